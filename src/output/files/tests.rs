use proptest::prelude::*;

use super::*;

fn folder(name: &str) -> std::path::PathBuf {
    let folder = std::env::temp_dir().join(format!("umklapp-files-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn any_number() -> impl Strategy<Value = f64> {
    prop_oneof![8 => any::<f64>(), 1 => Just(f64::INFINITY), 1 => Just(f64::NEG_INFINITY), 4 => -10.0..10.0]
        .prop_filter("NaN is never equal to itself", |x| !x.is_nan())
}

fn any_series(n: usize) -> impl Strategy<Value = Series> {
    (any::<bool>(), proptest::collection::vec((any_number(), any_number()), n)).prop_map(|(complex, data)| {
        if complex {
            Series::Complex(data.iter().map(|&(a, b)| C64::new(a, b)).collect())
        } else {
            Series::Real(data.iter().map(|d| d.0).collect())
        }
    })
}

fn any_table() -> impl Strategy<Value = Table> {
    (1usize..5, 1usize..20).prop_flat_map(|(columns, rows)| {
        proptest::collection::vec(any_series(rows), columns).prop_map(|columns| {
            let named = columns.into_iter().enumerate().map(|(i, data)| (format!("c{i}"), data));
            Table::from_columns(named).unwrap().with_title("a title").with_report("moments", 512)
        })
    })
}

/// Names that text files could take for something else.
fn strangely_named() -> impl Strategy<Value = Table> {
    let parts = [
        "#", ",", "\"", " ", "\n", "\t", "\r", "x", "1", ".re", ".im", "_", "é", "'", "\\", "\u{feff}", ": ",
    ];
    let name = proptest::collection::vec(proptest::sample::select(parts.to_vec()), 1..4)
        .prop_map(|parts| parts.concat());
    (proptest::collection::btree_set(name, 1..5), 0usize..5).prop_flat_map(|(names, _)| {
        proptest::collection::vec(any_series(4), names.len())
            .prop_map(move |columns| Table::from_columns(names.iter().cloned().zip(columns)).unwrap())
    })
}

#[test]
fn names_of_aligned_text_that_become_one_are_told_apart() {
    let path = folder("words").join("t.txt");
    let texts = Column::Texts(vec!["10".into()]);
    let numbers = |x: f64| Column::from(Series::Real(vec![x]));
    let columns = [("a b", numbers(1.0)), ("a\tb", texts), ("a_b", numbers(2.0)), ("a_b_2", numbers(3.0))];
    let mut table = Table::new();
    for (name, column) in columns {
        table = table.with_column(name, column).unwrap();
    }
    save(&table.clone().into(), &path, None).unwrap();
    assert_eq!(load(&path).unwrap(), FileData::Table(table));
    let text = std::fs::read_to_string(&path).unwrap();
    let words: Vec<&str> = text.lines().next().unwrap().split_whitespace().skip(1).collect();
    assert_eq!(words, ["a_b", "a_b_2", "a_b_3", "a_b_2_2"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn tables_come_back_bit_for_bit(table in any_table()) {
        let folder = folder("tables");
        for extension in ["csv", "tsv", "txt", "dat", "json", "npz"] {
            let path = folder.join(format!("t.{extension}"));
            save(&table.clone().into(), &path, Some(&Manifest::new())).unwrap();
            prop_assert_eq!(load(&path).unwrap(), FileData::Table(table.clone()), "{}", extension);
        }
    }

    #[test]
    fn names_of_all_kinds_come_back(table in strangely_named(), rows in 0usize..4) {
        let folder = folder("names");
        let table = table.slice(0, rows as i64).unwrap();
        for extension in ["csv", "tsv", "txt", "json"] {
            let path = folder.join(format!("n.{extension}"));
            save(&table.clone().into(), &path, None).unwrap();
            prop_assert_eq!(load(&path).unwrap(), FileData::Table(table.clone()), "{}", extension);
        }
    }

    #[test]
    fn series_and_matrices_come_back(data in any_series(12)) {
        let folder = folder("others");
        let matrix = Matrix::new(3, 4, data.clone()).unwrap();
        for extension in WRITTEN {
            let path = folder.join(format!("s.{extension}"));
            save(&data.clone().into(), &path, None).unwrap();
            prop_assert_eq!(load(&path).unwrap(), FileData::Series(data.clone()), "{}", extension);
            save(&matrix.clone().into(), &path, None).unwrap();
            prop_assert_eq!(load(&path).unwrap(), FileData::Matrix(matrix.clone()), "{}", extension);
        }
    }

    #[test]
    fn damaged_files_are_errors_or_whole(table in any_table(), cut in any::<bool>(), at in 0.0..1.0, bit in 0u8..8) {
        let folder = folder("damaged");
        for extension in WRITTEN {
            let path = folder.join(format!("t.{extension}"));
            save(&table.clone().into(), &path, Some(&Manifest::new())).unwrap();
            let whole = load(&path).unwrap();
            let mut bytes = std::fs::read(&path).unwrap();
            // Without its last line break alone, a file is still whole.
            let place = ((bytes.len() - 1) as f64 * at) as usize;
            if cut {
                bytes.truncate(place);
            } else {
                bytes[place] ^= 1 << bit;
            }
            std::fs::write(&path, &bytes).unwrap();
            match load(&path) {
                Err(_) => {}
                Ok(found) => prop_assert_eq!(found, whole, "{} {} {} {}", extension, cut, place, bit),
            }
        }
    }

    #[test]
    fn noise_is_an_error_never_a_panic(noise in proptest::collection::vec(any::<u8>(), 0..300)) {
        let folder = folder("noise");
        for extension in ["json", "npz", "npy", "csv", "txt"] {
            let path = folder.join(format!("n.{extension}"));
            std::fs::write(&path, &noise).unwrap();
            let _ = load(&path);
        }
    }
}

fn loaded(name: &str, text: &str) -> Result<FileData> {
    let path = folder("texts").join(name);
    std::fs::write(&path, text).unwrap();
    load(&path)
}

#[test]
fn grids_survive() {
    let table =
        Table::from_columns([("k", vec![0.0, 0.0, 1.0, 1.0]), ("e", vec![0.0, 1.0, 0.0, 1.0])]).unwrap();
    let table = table.with_column("a", vec![1.0; 4]).unwrap().with_grid(2, 2).unwrap();
    for extension in ["csv", "json", "npz", "txt"] {
        let path = folder("grids").join(format!("g.{extension}"));
        save(&table.clone().into(), &path, None).unwrap();
        assert_eq!(load(&path).unwrap(), FileData::Table(table.clone()), "{extension}");
    }
}

#[test]
fn texts_survive_and_others_are_read() {
    let names = ["csr", "", " # \"quoted\", twice", "1.5", "two\nlines", "é𝄞"].map(String::from).to_vec();
    let table = Table::from_columns([("a name", Column::from(names)), ("x", vec![1.0; 6].into())]).unwrap();
    for extension in ["csv", "tsv", "json", "npz"] {
        let path = folder("names").join(format!("n.{extension}"));
        save(&table.clone().into(), &path, None).unwrap();
        assert_eq!(load(&path).unwrap(), FileData::Table(table.clone()), "{extension}");
    }
    // Of another program the first row tells what a column holds.
    let FileData::Table(read) = loaded("words.csv", "name,x\ncsr,1\n2,3\n").unwrap() else {
        panic!("a table")
    };
    assert_eq!(read.get("name"), Some(&Column::Texts(vec!["csr".into(), "2".into()])));
    assert_eq!(read.column("x").unwrap(), &Series::from(vec![1.0, 3.0]));
    let FileData::Table(read) = loaded("words.json", r#"{"name": ["csr"], "x": [1]}"#).unwrap() else {
        panic!("a table")
    };
    assert_eq!(read.get("name"), Some(&Column::Texts(vec!["csr".into()])));
    assert!(save(&table.into(), folder("names").join("n.npy"), None).is_err());
}

#[test]
fn other_programs_files_are_read() {
    let expected = Table::from_columns([("column0", vec![1.0, 3.0]), ("column1", vec![2.0, 4.0])]).unwrap();
    assert_eq!(loaded("plain.csv", "1,2\n3,4\n").unwrap(), FileData::Table(expected.clone()));
    assert_eq!(loaded("plain.txt", "1 2 # one\n\n3 4\n").unwrap(), FileData::Table(expected));
    assert!(matches!(loaded("list.json", "[1, 2.5]").unwrap(), FileData::Series(_)));
    assert!(
        matches!(loaded("map.json", r#"{"x": [1], "y": [2]}"#).unwrap(), FileData::Table(t) if t.rows() == 1)
    );
}

#[test]
fn errors_name_the_place() {
    let message = |name: &str, text: &str| loaded(name, text).unwrap_err().to_string();
    assert!(
        message("a.csv", "x,y\n1,2\n1,oops\n").ends_with("line 3, column 2: `oops` where a number should be")
    );
    assert!(message("b.csv", "x,y\n1\n").ends_with("line 2 has 1 cells where 2 should be"));
    assert!(message("c.csv", "").ends_with("there are no numbers in it"));
    assert!(message("d.csv", "x,x\n1,2\n").contains("two columns `x`"));
    let table = r#"{"kind": "table", "columns": {"x": [1], "y": [2, 3]}}"#;
    assert!(message("e.json", table).contains("column `y` has 2 rows"));
    let mixed = r#"{"kind": "table", "columns": {"name": ["csr", 1]}, "texts": ["name"]}"#;
    assert!(message("e.json", mixed).contains("not a text"));
    assert!(message("e.json", r#"[{"x": 1}, {"y": 2}]"#).contains("object 1 of the list has other keys"));
    assert!(
        load(folder("texts").join("none.csv")).unwrap_err().to_string().ends_with("there is no such file")
    );
}

#[test]
fn unknown_extensions_list_the_known() {
    let data = FileData::Series(Series::Real(vec![1.0]));
    let error = save(&data, "a.cvs", None).unwrap_err();
    assert!(error.to_string().contains(".csv, .tsv, .txt"), "{error}");
    assert_eq!(error.hint_text(), Some("did you mean `.csv`?"));
    assert!(save(&data, "a", None).is_err());
    assert_eq!(save(&data, "a.svg", None).unwrap_err().hint_text(), Some("pictures are made by `plot`"));
}

#[test]
fn a_lying_header_is_refused_before_memory_is_asked_for() {
    let path = folder("lies").join("a.npy");
    let header = "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }";
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16 + 1).to_le_bytes());
    bytes.extend(header.bytes().chain(*b"\n"));
    std::fs::write(&path, bytes).unwrap();
    assert!(load(&path).unwrap_err().to_string().ends_with("shorter than its header says"));
}

#[test]
fn the_manifest_is_in_every_file() {
    let manifest = Manifest { seed: Some(7), ..Manifest::new() };
    let data = FileData::Table(Table::from_columns([("x", vec![1.0])]).unwrap());
    for extension in ["csv", "json", "npz", "txt"] {
        let path = folder("manifest").join(format!("m.{extension}"));
        save(&data, &path, Some(&manifest)).unwrap();
        let beside = if extension == "csv" { "-metadata.json" } else { "" };
        let bytes = std::fs::read(format!("{}{beside}", path.display())).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        assert!(text.contains("seed") && text.contains("umklapp"), "{extension}: {text}");
    }
}

#[test]
fn names_in_comments_cost_no_row() {
    let folder = folder("comments");
    let read = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        match load(&path).unwrap() {
            FileData::Table(table) => table,
            other => panic!("{other}"),
        }
    };
    let one = Series::from(vec![1.0, 3.0]);
    for (name, text) in [
        ("a.csv", "#x,y\n1,2\n3,4\n"),
        ("a.csv", "# x,y\n1,2\n3,4\n"),
        ("a.csv", "\u{feff}x,y\n1,2\n3,4\n"),
        ("a.csv", "# made: today\nx, y\n1,2\n3,4"),
        ("a.tsv", "# x\ty\n1\t2\n3\t4"),
        ("a.csv", "# kind: table\n#x,y\n1,2\n3,4\n"),
        ("a.txt", "# x y\n1 2\n3 4\n"),
    ] {
        let table = read(name, text);
        assert_eq!(table.names().collect::<Vec<_>>(), ["x", "y"], "{text}");
        assert_eq!(table.column("x").unwrap(), &one, "{text}");
    }
    assert_eq!(read("a.csv", "\u{feff}1,2\n3,4\n").column("column0").unwrap(), &one);
    assert_eq!(read("a.csv", "# a remark\n1,2\n3,4\n").rows(), 2);
}

#[test]
fn other_programs_read_names_and_rows() {
    let folder = folder("plain");
    let names: Vec<String> = ["a", "b, c"].map(String::from).to_vec();
    let table =
        Table::from_columns([("E / t", Column::from(vec![0.5, f64::NAN])), ("name", names.into())]).unwrap();
    let table = table.with_title("A title").with_report("moments", 8);
    for (extension, text) in
        [("csv", "E / t,name\n0.5,a\nNaN,\"b, c\"\n"), ("tsv", "E / t\tname\n0.5\ta\nNaN\tb, c\n")]
    {
        let path = folder.join(format!("p.{extension}"));
        save(&table.clone().into(), &path, Some(&Manifest::new())).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        let FileData::Table(read) = load(&path).unwrap() else { panic!("a table") };
        assert_eq!((read.title(), read.report().get("moments")), (Some("A title"), Some(&8.into())));
        // Lines that another program ends otherwise are the same lines.
        std::fs::write(&path, text.replace('\n', "\r\n")).unwrap();
        assert!(load(&path).is_ok());
        // A file that was changed is not the one that is described.
        std::fs::write(&path, text.replace("0.5", "0.6")).unwrap();
        let error = load(&path).unwrap_err();
        assert!(error.to_string().contains("-metadata.json`, which describes it"), "{error}");
        assert!(error.hint_text().unwrap().contains("remove its description"));
        std::fs::remove_file(format!("{}-metadata.json", path.display())).unwrap();
        let FileData::Table(read) = load(&path).unwrap() else { panic!("a table") };
        assert_eq!(
            (read.column("E / t").unwrap().get(0), read.title()),
            (Some(crate::number::Number::Real(0.6)), None)
        );
    }
    // Aligned text begins with its names.
    let path = folder.join("p.txt");
    save(&table.into(), &path, Some(&Manifest::new())).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.lines().next().unwrap().split_whitespace().eq(["#", "E_/_t", "name"]), "{text}");
}

#[test]
fn names_that_are_numbers_are_names() {
    let folder = folder("numbers");
    let column = Matrix::new(3, 1, vec![1.0, 2.0, 3.0]).unwrap();
    let one = Table::from_columns([("1", vec![2.0, 3.0])]).unwrap();
    let two = Table::from_columns([("1", vec![2.0]), ("\u{feff}2", vec![3.0])]).unwrap();
    for data in [FileData::Matrix(column), one.clone().into(), two.into(), one.slice(0, 0).unwrap().into()] {
        for extension in ["csv", "tsv", "txt"] {
            let path = folder.join(format!("n.{extension}"));
            save(&data, &path, None).unwrap();
            assert_eq!(load(&path).unwrap(), data, "{extension}");
        }
    }
}

#[test]
fn files_of_earlier_versions_are_read() {
    let head = "# program: umklapp\n# kind: table\n# check: crc32 in the last line\n# title: A title\n";
    for (name, rows) in [("old.csv", "x,y\n1.0,2.0\n"), ("old.txt", "#    x    y\n   1.0  2.0\n")] {
        let whole = format!("{head}{rows}");
        let FileData::Table(read) =
            loaded(name, &format!("{whole}# crc32: {}\n", check::of(whole.as_bytes()))).unwrap()
        else {
            panic!("a table")
        };
        assert_eq!((read.title(), read.names().collect::<Vec<_>>()), (Some("A title"), vec!["x", "y"]));
        assert!(loaded(name, &whole).unwrap_err().to_string().contains("the check, is missing"));
    }
}

fn table_of(name: &str, text: &str) -> Table {
    match loaded(name, text).unwrap_or_else(|e| panic!("{e}")) {
        FileData::Table(table) => table,
        other => panic!("{other}"),
    }
}

fn numbers_of(table: &Table, name: &str) -> Vec<String> {
    // NaN is shown, and equal then.
    table.column(name).unwrap().iter().map(|x| x.to_string()).collect()
}

#[test]
fn tables_of_pandas_are_read() {
    // An index without a name, cells without a number, complex numbers.
    let t = table_of("pandas.csv", ",a,n,z\n0,1.5,x,(1+2j)\n1,,,(3-1j)\n2,2.0,NA,0j\n");
    assert_eq!(t.names().collect::<Vec<_>>(), ["index", "a", "n", "z"]);
    assert_eq!(numbers_of(&t, "a"), ["1.5", "NaN", "2.0"]);
    assert_eq!(t.get("n"), Some(&Column::Texts(["x", "", "NA"].map(String::from).to_vec())));
    let z = [C64::new(1.0, 2.0), C64::new(3.0, -1.0), C64::new(0.0, 0.0)];
    assert_eq!(t.column("z").unwrap(), &Series::Complex(z.to_vec()));
    // The first number tells what a column holds.
    let t = table_of("first.csv", "a,s,none\nNA,NA,\nNA,b,\n2.0,,\n");
    assert_eq!(numbers_of(&t, "a"), ["NaN", "NaN", "2.0"]);
    assert_eq!(t.get("s"), Some(&Column::Texts(["NA", "b", ""].map(String::from).to_vec())));
    assert_eq!(numbers_of(&t, "none"), ["NaN"; 3]);
    // Columns that are counted.
    let t = table_of("counted.csv", "0,1,2\n0.5,0.25,1e-3\n1.0,2.0,3.0\n");
    assert_eq!((t.rows(), t.names().collect::<Vec<_>>()), (2, vec!["0", "1", "2"]));
    let t = table_of("counted.csv", ",0,1\n0,0.5,0.25\n1,1.0,2.0\n");
    assert_eq!((t.rows(), t.names().collect::<Vec<_>>()), (2, vec!["index", "0", "1"]));
    // A point at 0 and 1, and whole numbers, are numbers; but they may be names.
    let path = folder("texts").join("unsure.csv");
    for (text, rows, notes) in [
        ("0,1\n0.5,0.25\n", 2, 1),
        ("0,1,2\n3,4,5\n", 2, 1),
        ("0,1\n1,2\n", 2, 0),
        ("0,1,3\n0.5,0.5,0.5\n", 2, 0),
    ] {
        std::fs::write(&path, text).unwrap();
        let (Contents::One(FileData::Table(t)), said) = load_with(&path, None).unwrap() else {
            panic!("a table")
        };
        assert_eq!((t.rows(), said.len()), (rows, notes), "{text}");
        let (Contents::One(FileData::Table(t)), said) = load_with(&path, Some(true)).unwrap() else {
            panic!("a table")
        };
        assert_eq!((t.rows(), said.len()), (rows - 1, 0), "{text}");
        let (_, said) = load_with(&path, Some(false)).unwrap();
        assert!(said.is_empty(), "{text}");
    }
    // A matrix of this program without what describes it.
    let path = folder("texts").join("bare.csv");
    save(&Matrix::new(1, 3, vec![1.0, 2.0, 3.0]).unwrap().into(), &path, None).unwrap();
    std::fs::remove_file(format!("{}-metadata.json", path.display())).unwrap();
    assert!(matches!(load(&path).unwrap(), FileData::Table(t) if t.rows() == 1));
}

#[test]
fn numbers_of_numpy_and_fortran_are_read() {
    let z = |re, im| C64::new(re, im);
    let row = " (1.000000000000000000e+00+2.000000000000000000e+00j)  (-5.0e-01-1.0e-03j)\n (0.0e+00+-3.0e+10j)  \
               (1.0e+00+0.0e+00j)\n";
    let t = table_of("savetxt.txt", row);
    assert_eq!(t.column("column0").unwrap(), &Series::Complex(vec![z(1.0, 2.0), z(0.0, -3e10)]));
    assert_eq!(t.column("column1").unwrap(), &Series::Complex(vec![z(-0.5, -1e-3), z(1.0, 0.0)]));
    let t = table_of("fortran.dat", " 1.0D-03 (1.0,2.0)  0.25-102\n 2.5D+02 ( -1.0, 0.5) 1.0+300\n");
    assert_eq!(t.column("column0").unwrap(), &Series::from(vec![1e-3, 250.0]));
    assert_eq!(t.column("column1").unwrap(), &Series::Complex(vec![z(1.0, 2.0), z(-1.0, 0.5)]));
    assert_eq!(t.column("column2").unwrap(), &Series::from(vec![0.25e-102, 1e300]));
    let error = loaded("fortran.dat", "1.0 2.0\n1.0 ****\n").unwrap_err();
    assert!(error.to_string().ends_with("line 2, column 2: `****` where a number should be"), "{error}");
}

#[test]
fn objects_of_other_programs_are_tables_or_maps() {
    let all = |text: &str| {
        let path = folder("objects").join("o.json");
        std::fs::write(&path, text).unwrap();
        load_all(&path).unwrap_or_else(|e| panic!("{text}: {e}"))
    };
    // Keys that this program's files have, too.
    for text in [
        r#"{"columns": [1, 2], "names": [3, 4]}"#,
        "\u{feff}{\"names\": [1, NaN], \"values\": [Infinity, -Infinity]}",
        r#"{"kind": ["a", "b"], "x": [1, 2]}"#,
    ] {
        assert!(matches!(all(text), Contents::One(FileData::Table(t)) if t.rows() == 2), "{text}");
    }
    let Contents::One(FileData::Table(t)) = all(r#"[{"x": 1, "n": "a"}, {"x": NaN, "n": "b"}]"#) else {
        panic!("a table")
    };
    assert_eq!(numbers_of(&t, "x"), ["1.0", "NaN"]);
    for text in [
        r#"{"x": [1], "y": [2, 3]}"#,
        r#"{"kind": "table", "x": 1}"#,
        r#"{"kind": "series", "energy": NaN, "names": ["a"]}"#,
        r#"{"columns": {"x": [1]}}"#,
        "{}",
    ] {
        assert!(matches!(all(text), Contents::Map(_)), "{text}");
    }
    let Contents::Map(map) = all(r#"{"e": NaN, "n": "NaN", "list": [1, 2.0, -Infinity, {"a": null}]}"#)
    else {
        panic!("a map")
    };
    assert!(matches!(map[0].1, SavedValue::Number(Number::Real(x)) if x.is_nan()));
    assert_eq!(map[1].1, SavedValue::Text("NaN".into()));
    let SavedValue::List(list) = &map[2].1 else { panic!("a list") };
    let inner = SavedValue::Map(vec![("a".into(), SavedValue::Nothing)]);
    let real = |x: f64| SavedValue::Number(x.into());
    assert_eq!(list[..], [SavedValue::Whole(1), real(2.0), real(f64::NEG_INFINITY), inner]);
}

#[test]
fn what_numpy_would_lose_is_refused() {
    let folder = folder("zeros");
    let texts = |text: &str| Column::Texts(vec!["x".into(), text.into()]);
    let named = |name: &str, data: Column| FileData::from(Table::from_columns([(name, data)]).unwrap());
    for (data, part) in [
        (named("a\0", vec![1.0].into()), "cannot be called `a\\0`"),
        (named("t", texts("a\0")), "text 1 of `t` ends with a character of code 0"),
    ] {
        let error = save(&data, folder.join("z.npz"), None).unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
        assert!(error.hint_text().unwrap().contains(".json"));
        save(&data, folder.join("z.json"), None).unwrap();
        assert_eq!(load(folder.join("z.json")).unwrap(), data);
    }
    let inside = named("t", texts("a\0b"));
    save(&inside, folder.join("z.npz"), None).unwrap();
    assert_eq!(load(folder.join("z.npz")).unwrap(), inside);
}

#[test]
fn one_long_text_makes_no_large_file() {
    let folder = folder("long");
    let mut texts = vec!["short é".to_string(); 1000];
    texts[7] = "x".repeat(100_000);
    let data = FileData::from(Table::from_columns([("t", Column::Texts(texts))]).unwrap());
    for extension in ["npz", "h5", "json"] {
        let path = folder.join(format!("l.{extension}"));
        save(&data, &path, None).unwrap();
        let size = std::fs::metadata(&path).unwrap().len();
        assert!(size < 1 << 20, "{extension}: {size}");
        assert_eq!(load(&path).unwrap(), data, "{extension}");
    }
}
