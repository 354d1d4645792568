//! Files that are damaged, missing or of another kind, and a disk that is full.

use std::io::Write;

use super::{engine, fail, prepare};
use crate::common::Folder;

#[test]
fn gauge_files_that_are_damaged() {
    let folder = Folder::new("gauge");
    let mut engine = engine(Some(folder.to_path_buf()));
    prepare(
        &mut engine,
        "let u = gauge::reference_field(lattice::hypercubic(2, 2, 2, 2), 0.3);
        u.save(\"whole.nersc\"); u.save(\"whole.lime\");",
    );
    let whole = |name: &str| std::fs::read(folder.join(name)).unwrap();
    for kind in ["nersc", "lime"] {
        let bytes = whole(&format!("whole.{kind}"));
        folder.file(&format!("cut.{kind}"), &bytes[..bytes.len() * 2 / 3]);
        let mut flipped = bytes.clone();
        let at = bytes.len() / 2;
        flipped[at] ^= 1;
        folder.file(&format!("flipped.{kind}"), &flipped);
    }
    // A right checksum over links that are not unitary.
    let text = String::from_utf8_lossy(&whole("whole.nersc")).into_owned();
    let head = text.find("END_HEADER\n").unwrap() + "END_HEADER\n".len();
    let mut bytes = whole("whole.nersc");
    let end = bytes.len();
    bytes[head..end].fill(0);
    let old = text.lines().find(|l| l.starts_with("CHECKSUM")).unwrap().to_string();
    let zero = format!("{:<width$}", "CHECKSUM = 0", width = old.len());
    let at = text.find(&old).unwrap();
    bytes[at..at + old.len()].copy_from_slice(zero.as_bytes());
    folder.file("zero.nersc", &bytes);
    folder.file("text.nersc", b"hello");
    // Headers that say what is not so.
    for (name, key, value) in [
        ("open", "BOUNDARY_4", "OPEN"),
        ("word", "PLAQUETTE", "abc"),
        ("trace", "LINK_TRACE", "NaN"),
        ("short", "DIMENSION_4", "1"),
        ("none", "DIMENSION_4", "0"),
    ] {
        let line = text.lines().find(|l| l.starts_with(key)).unwrap();
        let (before, after) = (text.find(line).unwrap(), text.find(line).unwrap() + line.len());
        let whole = whole("whole.nersc");
        let changed = [&whole[..before], format!("{key} = {value}").as_bytes(), &whole[after..]].concat();
        folder.file(&format!("{name}.nersc"), &changed);
    }
    // Links of another program that are all a little too long.
    let stretched = |word: &[u8]| (f64::from_be_bytes(word.try_into().unwrap()) * (1.0 + 1e-4)).to_be_bytes();
    let rough: Vec<u8> = whole("whole.nersc")[head..].chunks(8).flat_map(stretched).collect();
    let words = rough.chunks(4).map(|word| u32::from_be_bytes(word.try_into().unwrap()));
    let sum = words.fold(0u32, u32::wrapping_add);
    let header = text[..head].replace(&old, &format!("CHECKSUM = {sum:x}"));
    let header: String = header.split_inclusive('\n').filter(|line| !line.starts_with("CRC32")).collect();
    folder.file("rough.nersc", [header.as_bytes(), &rough].concat());
    prepare(
        &mut engine,
        "let near = load(\"rough.nersc\", #{ reunitarise: true });
        assert((near.link(5, 2) - u.link(5, 2)).norm() < 1e-14, \"only their size was wrong\");",
    );
    fail(
        &mut engine,
        &[
            ("load(\"rough.nersc\")", "not in SU(3)", "reunitarise: true"),
            ("load(\"zero.nersc\", #{ reunitarise: true })", "not in SU(3)", "damaged"),
            ("load(\"whole.nersc\", #{ reunitarize: true })", "unknown option", "`reunitarise`"),
            ("load(\"missing.lime\")", "no such file", "folder"),
            ("load(\"cut.nersc\")", "bytes", "truncated"),
            ("load(\"cut.lime\")", "ends inside", "truncated"),
            ("load(\"flipped.nersc\")", "checksum", "damaged"),
            ("load(\"flipped.lime\")", "checksum", "damaged"),
            ("load(\"zero.nersc\")", "not in SU(3)", "damaged"),
            ("load(\"open.nersc\")", "a boundary of kind OPEN", "PERIODIC"),
            ("load(\"word.nersc\")", "the header says abc", "convention"),
            ("load(\"trace.nersc\")", "the header says NaN", "convention"),
            ("load(\"short.nersc\")", "take 4608 bytes, and 9216 are there", "the sizes or the type"),
            ("load(\"none.nersc\")", "does not give four sizes", "four directions"),
            ("load(\"text.nersc\")", "neither a NERSC archive nor a lime file", "BEGIN_HEADER"),
            ("u.save(\"x\", #{ format: \"hdf5\" })", "no format `hdf5`", "ildg"),
            ("u.save(\"nowhere/at/all.lime\")", "cannot write", "does not exist"),
        ],
    );
}

/// An archive of arrays of doubles as other programs write them.
fn npz(arrays: &[(&str, &[usize], f64)]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let stored = zip::write::FileOptions::default().compression_method(zip::CompressionMethod::Stored);
    for (name, shape, value) in arrays {
        let sizes: String = shape.iter().map(|n| format!("{n}, ")).collect();
        let header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({sizes}), }}\n");
        writer.start_file(format!("{name}.npy"), stored).unwrap();
        writer.write_all(b"\x93NUMPY\x01\x00").unwrap();
        writer.write_all(&(header.len() as u16).to_le_bytes()).unwrap();
        writer.write_all(header.as_bytes()).unwrap();
        let count = shape.iter().product();
        writer.write_all(&value.to_le_bytes().repeat(count)).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

#[test]
fn vector_files_that_are_damaged_or_foreign() {
    let folder = Folder::new("vectors");
    let mut engine = engine(Some(folder.to_path_buf()));
    prepare(
        &mut engine,
        "let lat = lattice::hypercubic(2, 2, 2, 4); let psi = wilson::reference_spinor(lat, 2);
        let q = wilson::kernel(gauge::reference_field(lat, 0.5), #{ s: 0.4 });
        psi.save(\"whole.npz\"); ritz(q * q, #{ count: 2, tol: 1.0, seed: 1, progress: false }).save(\"pairs.npz\");",
    );
    for name in ["whole", "pairs"] {
        let bytes = std::fs::read(folder.join(format!("{name}.npz"))).unwrap();
        folder.file(&format!("{name}_cut.npz"), &bytes[..bytes.len() / 2]);
        let mut flipped = bytes.clone();
        flipped[2000] ^= 1;
        folder.file(&format!("{name}_flipped.npz"), &flipped);
    }
    let vectors = ("vectors", [4, 2].as_slice(), 0.5);
    let (values, residuals) = (("values", [2].as_slice(), 0.5), ("residuals", [2].as_slice(), 0.5));
    for (name, arrays) in [
        ("plain", vec![vectors]),
        ("lattice", vec![("vectors", [4, 2, 2, 2, 12, 1].as_slice(), 0.5)]),
        ("of_three", vec![("vectors", [4, 2, 2].as_slice(), 0.5)]),
        ("empty", vec![("vectors", [0, 2].as_slice(), 0.5)]),
        ("known", vec![vectors, values, residuals]),
        ("no_residuals", vec![vectors, values]),
        ("no_values", vec![vectors, residuals]),
        ("too_many", vec![vectors, ("values", [3].as_slice(), 0.5), residuals]),
        ("negative", vec![vectors, values, ("residuals", [2].as_slice(), -0.5)]),
        ("nan", vec![("vectors", [4, 2].as_slice(), f64::NAN), values, residuals]),
    ] {
        folder.file(&format!("{name}.npz"), npz(&arrays));
    }
    // What others wrote well is read.
    prepare(
        &mut engine,
        "assert(load(\"plain.npz\").columns == 2 && norm(load(\"plain.npz\").column(1)) == 1.0, \"four halves\");
        assert(load(\"known.npz\").values == series([0.5, 0.5]), \"pairs\");
        let psi = load(\"lattice.npz\"); assert(norm(q * psi) > 0.0, \"on the lattice\");",
    );
    fail(
        &mut engine,
        &[
            ("load(\"missing.npz\")", "no such file", "relative"),
            ("load(\"whole_cut.npz\")", "not a whole NPZ archive", "truncated"),
            ("load(\"pairs_cut.npz\")", "not a whole NPZ archive", "truncated"),
            ("load(\"whole_flipped.npz\")", "checksum", "damaged"),
            ("load(\"pairs_flipped.npz\")", "checksum", "damaged"),
            ("load(\"of_three.npz\")", "array `vectors` has the shape [4, 2, 2]", "component"),
            ("load(\"empty.npz\")", "array `vectors` has the shape [0, 2]", "component"),
            ("load(\"no_residuals.npz\")", "there is no array `residuals`", "eigenpairs"),
            ("load(\"no_values.npz\")", "there is no array `values`", "eigenpairs"),
            ("load(\"too_many.npz\")", "array `values` is not 2 numbers", "eigenpairs"),
            ("load(\"negative.npz\")", "residuals below 0", "eigenpairs"),
            ("load(\"nan.npz\")", "no numbers", "eigenpairs"),
            ("psi.save(\"psi.csv\")", "vectors are not saved as", ".npz"),
            ("psi.save(\"nowhere/psi.npz\")", "cannot write", "does not exist"),
            ("overlap::sign(q, #{ low_modes: load(\"known.npz\") })", "low modes of 4 rows", "ritz"),
            ("overlap::sign(q, #{ low_modes: load(\"whole.npz\") })", "takes an Eigen", "low_modes"),
            (
                "wilson::kernel(gauge::unit(lattice::hypercubic(4, 2, 2, 2)), #{}) * load(\"whole.npz\")",
                "does not go with",
                "same lattice",
            ),
        ],
    );
}

#[test]
fn files_that_are_missing_cut_off_or_of_another_kind() {
    let folder = Folder::new("files");
    let mut engine = engine(Some(folder.to_path_buf()));
    prepare(
        &mut engine,
        "let t = table(#{ a: [1, 2, 3], b: [4, 5, 6] });
        for kind in [\"csv\", \"json\", \"npz\"] { t.save(`whole.${kind}`); }",
    );
    let cut = |kind: &str| {
        let whole = std::fs::read(folder.join(format!("whole.{kind}"))).unwrap();
        whole[..whole.len() - whole.len() / 3].to_vec()
    };
    folder.file("cut.json", cut("json"));
    folder.file("cut.npz", cut("npz"));
    folder.file("cut.csv", b"a,b\n1.0,2.0\n3.0\n");
    folder.file("none.csv", b"");
    folder.file("cut.mtx", b"%%MatrixMarket matrix coordinate real general\n3 3 3\n1 1 1.0\n");
    folder.file(
        "huge.mtx",
        b"%%MatrixMarket matrix coordinate real general\n1000000000000 1000000000000 1\n1 1 1.0\n",
    );
    folder.file("text.mtx", b"hello\n");
    let market = |name: &str, kind: &str, entries: &str| {
        let head = format!("%%MatrixMarket matrix coordinate {kind}\n2 2 {}\n", entries.lines().count());
        folder.file(name, (head + entries).as_bytes());
    };
    market("phase.mtx", "complex hermitian", "1 1 0.0 3.0\n");
    market("skew.mtx", "real skew-symmetric", "1 1 3.0\n");
    market("sides.mtx", "real symmetric", "2 1 3.0\n1 2 3.0\n");
    folder.file("cut.fcidump", b"&FCI NORB=2,NELEC=2\n ORBSYM=1,");
    folder.file("bare.fcidump", b"&FCI NORB=2,NELEC=2,MS2=0\n&END\n");
    folder.file("text.fcidump", b"hello\n");
    folder.file("wide.fcidump", b"&FCI NORB=2,NELEC=5,MS2=1\n&END\n");
    folder.file("big.fcidump", b"&FCI NORB=100000,NELEC=2,MS2=0\n&END\n");
    folder.file("spins.fcidump", b"&FCI NORB=2,NELEC=2,MS2=0,IUHF=1\n/\n");
    folder.file("far.fcidump", b"&FCI NORB=2,NELEC=2,MS2=0\n/\n0.5 1 1 0 0\n0.5 1 3 0 0\n");
    folder.file("five.fcidump", b"&FCI NORB=2,NELEC=2,MS2=0\n/\n0.5 3 1 1 2 2\n");
    folder.file("half.fcidump", b"&FCI NORB=2,NELEC=2,MS2=0\n/\n0.5 1 1 2 0\n");
    folder.file("complex.fcidump", b"&FCI NORB=2,NELEC=2,MS2=0\n/\n(0.5,0.1) 1 1 0 0\n");
    folder.file("twice.fcidump", b"&FCI NORB=2,NELEC=2,MS2=0\n/\n0.5 1 2 0 0\n0.4 2 1 0 0\n");
    folder.file("cut_hr.dat", b"by hand\n 2\n 3\n 2 1 2\n-1 0 0 1 1 0.0 0.0\n");
    fail(
        &mut engine,
        &[
            ("load(\"missing.csv\")", "there is no such file", "folder"),
            (
                "load(\"whole.csv\", #{ precision: \"single\" })",
                "`precision` is for a file of orbitals",
                "leave it out",
            ),
            ("load(\"whole.npz\", #{ wavefunction: 1 })", "`wavefunction` takes a WaveFunction", "`1`"),
            ("load(\"cut.json\")", "cut.json", "truncated"),
            ("load(\"cut.npz\")", "cut.npz", "truncated"),
            ("load(\"cut.csv\")", "line 3 has 1 cells where 2 should be", "truncated"),
            ("load(\"none.csv\")", "there are no numbers in it", "truncated"),
            ("load(\"cut.mtx\")", "ends after line 3", "truncated"),
            ("load(\"huge.mtx\")", "takes 16.0 TB", "fewer"),
            ("load(\"text.mtx\")", "is no header", "%%MatrixMarket"),
            ("load(\"phase.mtx\")", "line 3 of", ""),
            ("load(\"skew.mtx\")", "that this symmetry does not allow", ""),
            ("load(\"sides.mtx\")", "on the other side of the diagonal", "one side"),
            ("models::fcidump(\"missing.fcidump\")", "no such file", ""),
            ("models::fcidump(\"text.fcidump\")", "line 1: no header", "&FCI"),
            ("models::fcidump(\"cut.fcidump\")", "no end", "&FCI"),
            ("models::fcidump(\"bare.fcidump\")", "without an integral", "&FCI"),
            ("models::fcidump(\"wide.fcidump\")", "do not fit", "&FCI"),
            ("models::fcidump(\"big.fcidump\")", "from 1 to 400", "&FCI"),
            ("models::fcidump(\"spins.fcidump\")", "spins apart", "&FCI"),
            ("models::fcidump(\"far.fcidump\")", "line 4: four orbitals from 0 to 2", "&FCI"),
            ("models::fcidump(\"five.fcidump\")", "line 3: four orbitals from 0 to 2", "&FCI"),
            ("models::fcidump(\"half.fcidump\")", "between orbitals and none", "&FCI"),
            ("models::fcidump(\"complex.fcidump\")", "not a real number", "&FCI"),
            ("models::fcidump(\"twice.fcidump\")", "two values", "eight places"),
            ("lattice::wannier90(\"cut_hr.dat\", #{ cells: [2, 2, 2] })", "ends after line 5", "truncated"),
            ("t.save(\"nowhere/at/all.csv\")", "cannot write", "does not exist"),
            ("table([[\"a\", [\"x\", 1]]])", "element 1 is not a text but a number", "texts alone"),
            ("table([[\"a\", [1, \"x\"]]])", "element 1 is not a number but a text", "all elements"),
            (
                "let b = table([[\"a\", [\"x\"]]]); b.push(#{ a: 1 })",
                "holds texts, and the row has a number",
                "",
            ),
            ("let b = table([[\"a\", [\"x\"]]]); b.save(\"a.npy\")", "holds texts, not numbers", ".npz"),
            (
                "plot(table([[\"a\", [\"x\"]], [\"b\", [1]]]), #{ log: \"x\", file: \"a.svg\" })",
                "axis of texts",
                "leave",
            ),
            (
                "plot(t, #{ values: [1.0], file: \"a.svg\" })",
                "`values` is for a picture of a lattice",
                "leave it out",
            ),
            (
                "plot(lattice::square(3, 3), #{ log: \"y\", file: \"a.svg\" })",
                "`log` is for curves",
                "leave it out",
            ),
            (
                "plot(lattice::square(3, 3), #{ values: [1.0], file: \"a.svg\" })",
                "1 numbers for 9 sites",
                "one for each",
            ),
            ("plot(lattice::chain(1), #{ sizes: [-1.0], file: \"a.svg\" })", "a site of size -1", "modulus"),
            ("plot(series([1.0, 2.0]), \"a.png\")", "a text in place of the ordinates", "option"),
            ("plot(lattice::chain(1), #{ sizes: [I], file: \"a.svg\" })", "option `sizes`", ""),
            ("plot(lattice::chain(1), #{ currents: 1, file: \"a.svg\" })", "option `currents`", ""),
            (
                "plot(lattice::chain(1), #{ currents: t, file: \"a.svg\" })",
                "without the column `from`",
                "s.currents",
            ),
            (
                "plot(lattice::chain(1), #{ currents: table(#{ from: [0], to: [7], current: [1.0] }), file: \"a.svg\" \
                 })",
                "a current at site 7 of 1",
                "of one sample",
            ),
            (
                "plot(lattice::chain(1), #{ axes: [0, 3], file: \"a.svg\" })",
                "option `axes` is [0, 3]",
                "two of the axes 0, 1 and 2",
            ),
            ("plot(lattice::chain(1), #{ file: \"a.html\" })", "a picture of a lattice as a page", "`.svg`"),
            ("plot(lattice::square(200, 200), #{ file: \"a.svg\" })", "a picture of 40000 sites", "20000"),
            ("plot(t, #{ marks: [\"none\"], file: \"a.svg\" })", "no curve `none`", ""),
            ("plot(t, #{ right: 1, file: \"a.svg\" })", "option `right`", ""),
            ("plot(t, #{ ticks: [[1]], file: \"a.svg\" })", "option `ticks`", ""),
            ("plot(t, #{ style: \"bar\", file: \"a.svg\" })", "no style `bar`", "did you mean \"bars\""),
            (
                "plot(t, #{ cm: [8.6], file: \"a.svg\" })",
                "option `cm` takes an array of two numbers",
                "width and height",
            ),
            ("plot(t, #{ cm: [8.6, 0.1], file: \"a.svg\" })", "8.6 x 0.1 centimetres", "8.6 wide"),
            (
                "plot(t, #{ cm: [8.6, 6], size: [300, 300], file: \"a.svg\" })",
                "the options `cm` and `size` exclude each other",
                "leave one of them out",
            ),
            ("plot(t, #{ font: \"mono\", file: \"a.svg\" })", "no font `mono`", "serif"),
            ("plot(t, #{ font_size: 1000, file: \"a.svg\" })", "option `font_size` is 1000", "72"),
            ("plot(t, #{ file: \"a.eps\" })", ".pdf` or `.html`, not as", "tells the format"),
            ("plot(t, #{ file: \"nowhere/at/all.html\" })", "cannot write", "does not exist"),
            ("t.save(\"nowhere/at/all.html\")", "cannot write", "does not exist"),
            ("t.save(\"a.htm\")", "no format is known by the extension `.htm`", "`.html`"),
            ("t.save(\"a.html\"); load(\"a.html\")", "a page of HTML is for people", "`.csv`"),
            ("panels([], #{ file: \"a.svg\" })", "panels without a plot", "rows"),
            ("panels([[t], []], #{ file: \"a.svg\" })", "panels without a plot", "rows"),
            ("panels([t], #{ file: \"a.svg\" })", "a row of panels is a Table", "[[a, b]]"),
            ("panels([[7]], #{ file: \"a.svg\" })", "was expected, not a number", ""),
            ("panel(t, #{ file: \"a.svg\" })", "unknown option `file`", ""),
            ("measured(\"x\")", "no function `measured(string)`", ""),
            ("t.measured([1])", "named by texts", "seconds"),
            ("t.whole(#{ digits: 0 })", "digits", ""),
            ("on(\"gpu\", || 1)", "no backend `gpu`", "cuda"),
            ("on(\"cpu\", || 1, #{ threads: 0 })", "threads", ""),
            ("on(\"cpu\", || 1, #{ threads: 100000 })", "100000 threads", "at most"),
            ("plot(t, #{ file: \"nowhere/at/all.svg\" })", "cannot write", "does not exist"),
            ("import \"no_such_module\" as m;", "no module `no_such_module`", "beside the script"),
        ],
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk() {
    let folder = Folder::new("full");
    for kind in ["csv", "json", "npz", "svg", "png"] {
        std::os::unix::fs::symlink("/dev/full", folder.join(format!("full.{kind}"))).unwrap();
    }
    let mut engine = engine(Some(folder.to_path_buf()));
    prepare(&mut engine, "let t = table(#{ a: [1, 2, 3], b: [4, 5, 6] });");
    fail(
        &mut engine,
        &[
            ("t.save(\"full.csv\")", "no space left", "free some"),
            ("t.save(\"full.json\")", "no space left", "free some"),
            ("t.save(\"full.npz\")", "no space left", "free some"),
            ("plot(t, #{ file: \"full.svg\" })", "no space left", "free some"),
            ("plot(t, #{ file: \"full.png\" })", "no space left", "free some"),
        ],
    );
}

#[test]
fn arrays_of_other_programs() {
    let folder = Folder::new("arrays");
    let mut engine = engine(Some(folder.to_path_buf()));
    folder.file("several.npz", npz(&[("m", &[2, 3], 0.5), ("x", &[4], 1.5), ("z", &[], 2.5)]));
    folder.file("lengths.npz", npz(&[("x", &[4], 1.5), ("y", &[3], 2.0)]));
    folder.file("columns.npz", npz(&[("x", &[4], 1.5), ("y", &[4], 2.0)]));
    folder.file("cube.npz", npz(&[("x", &[4], 1.5), ("cube", &[2, 2, 2], 0.5)]));
    prepare(
        &mut engine,
        "let all = load(\"several.npz\");
        assert(all.m.rows == 2 && all.m.columns == 3 && all.m.at(1, 2) == 0.5, \"a matrix\");
        assert(all.x == series([1.5, 1.5, 1.5, 1.5]) && all.z == 2.5, \"a series and a number\");
        assert(load(\"lengths.npz\").y.len == 3, \"other lengths\");
        assert(type_of(load(\"columns.npz\")) == \"Table\", \"columns\");",
    );
    fail(
        &mut engine,
        &[
            ("load(\"cube.npz\")", "array `cube`: an array of 3 dimensions", "reshape"),
            ("load(\"several.npz\").y", "has no `y`", "keys()"),
            ("load(\"x.h5\")", "there is no such file", "relative"),
            ("load(\"columns.npz\", #{ k: 1 })", "a file of orbitals", "leave it out"),
        ],
    );
    folder.file("x.h5", b"\x89HDF\r\n\x1a\n");
    fail(
        &mut engine,
        &[
            ("load(\"x.h5\")", "not a whole HDF5 file", "truncated"),
            ("series([1.0]).save(\"x.hdf\")", "no format is known by the extension `.hdf`", "`.hdf5`"),
            ("table([[\"a/b\", [1.0]]]).save(\"y.h5\")", "a dataset cannot be called `a/b`", "rename"),
        ],
    );
}

#[test]
fn runs_that_do_not_belong_together() {
    let mut engine = engine(None);
    prepare(
        &mut engine,
        "let t = |x, y| table([[\"x\", x], [\"y\", y]]);
        let a = t.call([0, 1], [1, 2]); let b = t.call([0.5, 1.5], [1, 2]); let c = table([[\"x\", [0, 1]], [\"z\", \
        [1, 2]]]);
        let h = tight_binding(lattice::chain(8));
        let mu = |n, seed| kpm::moments(h, #{ moments: n, vectors: 1, seed: seed, window: window(-2.1, 2.1), progress: \
        false });
        let texts = |k, s| table([[\"x\", [0]], [\"y\", [k]], [\"s\", [s]]]);",
    );
    fail(
        &mut engine,
        &[
            ("merge([])", "nothing to merge", "Tables"),
            ("merge(a)", "no function `merge(Table)`", "merge"),
            ("merge([1, 2])", "run 1 holds a number, which `merge` does not take", "Moments"),
            ("merge([a, 1])", "run 1 holds a Table, and run 2 holds a number", "Moments"),
            ("merge([a, c])", "run 1 has the columns x, y, and run 2 has x, z", "same columns"),
            ("merge([a, a])", "run 1 and run 2 hold the same numbers", "seed"),
            ("merge([a, b])", "run 1 and run 2 overlap in `x`", "one after another"),
            ("merge([a, b], #{ names: [\"one\", \"two\"] })", "one and two overlap", "window"),
            ("merge([a, b], #{ appnd: true })", "unknown option `appnd`", "`append`"),
            (
                "merge([texts.call(1, \"u\"), texts.call(2, \"v\")])",
                "texts of column `s` differ",
                "one after another",
            ),
            ("merge([mu.call(4, 1), mu.call(4, 1)])", "have a vector in common", "seed"),
            (
                "merge([mu.call(4, 1), mu.call(8, 2)])",
                "run 1 and run 2: moments of different windows",
                "`window`",
            ),
        ],
    );
}
