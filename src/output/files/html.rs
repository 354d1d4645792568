//! A table as a page for people: it scrolls, sorts and filters in a browser. It is not read back.

use std::path::Path;

use serde_json::{Value, json};

use super::{FileData, WrittenColumn, json as numbers, parts};
use crate::error::Result;
use crate::output::{Manifest, page};

impl FileData {
    /// A table or a matrix as HTML, for notebooks; none for what a line of text shows as well.
    pub fn html(&self) -> Option<String> {
        match self {
            FileData::Table(table) => Some(page::table(table)),
            FileData::Matrix(matrix) => Some(page::matrix(matrix)),
            FileData::Series(_) => None,
        }
    }
}

pub fn save(data: &FileData, path: &Path, manifest: Option<&Manifest>) -> Result<()> {
    let page = page_of(data, manifest)?;
    super::write_bytes(path, page.as_bytes())
}

fn page_of(data: &FileData, manifest: Option<&Manifest>) -> Result<String> {
    let table = data.to_table()?;
    let columns: Vec<(String, WrittenColumn)> =
        table.columns().flat_map(|(name, column)| parts(name, column)).collect();
    let of = |column: &WrittenColumn| match column {
        WrittenColumn::Numbers(data) => data.iter().map(|&x| numbers::number(x)).collect::<Value>(),
        WrittenColumn::Texts(data) => json!(data),
    };
    let title = table.title().unwrap_or_default();
    let spec = json!({
        "title": title,
        "names": columns.iter().map(|(name, _)| name).collect::<Vec<_>>(),
        "texts": columns.iter().map(|(_, data)| matches!(data, WrittenColumn::Texts(_))).collect::<Vec<_>>(),
        "columns": columns.iter().map(|(_, data)| of(data)).collect::<Vec<_>>(),
    });
    let still = page::table(&table);
    let mut made = serde_json::Map::new();
    if !table.report().is_empty() {
        made.insert("report".into(), Value::Object(table.report().clone()));
    }
    if let Some(manifest) = manifest {
        made.insert("manifest".into(), manifest.to_json());
    }
    let made = Some(Value::Object(made)).filter(|made| *made != json!({}));
    Ok(page::whole(&page::PageContent::Table, title, &spec, &still, made.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::{C64, Table};

    #[test]
    fn a_page_holds_every_number_of_the_table() {
        let x = vec![1.0 / 3.0, f64::NAN, f64::INFINITY, -2.5e-300];
        let table = Table::from_columns([("x<b>", x)])
            .and_then(|t| t.with_column("z", vec![C64::new(1.0, -2.0); 4]))
            .and_then(|t| t.with_column("name", vec!["</script>".to_string(); 4]))
            .unwrap()
            .with_title("a & b");
        let page = page_of(&table.into(), Some(&Manifest::new())).unwrap();
        let data = page::data_of(&page);
        assert_eq!(data["names"], json!(["x<b>", "z.re", "z.im", "name"]));
        assert_eq!(data["columns"][0], json!([1.0 / 3.0, null, "inf", -2.5e-300]));
        assert_eq!(data["columns"][2], json!([-2.0, -2.0, -2.0, -2.0]));
        assert_eq!(data["texts"], json!([false, false, false, true]));
        assert!(page.contains("<title>a &amp; b</title>") && page.contains(env!("CARGO_PKG_VERSION")));
        assert_eq!(page.matches("</script>").count(), 2);
    }

    #[test]
    fn empty_tables_and_other_data_are_pages_too() {
        let empty = Table::from_columns([("x", Vec::<f64>::new())]).unwrap();
        assert_eq!(page::data_of(&page_of(&empty.into(), None).unwrap())["columns"], json!([[]]));
        let none = page_of(&Table::new().into(), None).unwrap();
        assert_eq!(page::data_of(&none)["names"], json!([]));
        let matrix = page_of(&crate::number::Matrix::identity(2).unwrap().into(), None).unwrap();
        assert_eq!(page::data_of(&matrix)["columns"], json!([[1.0, 0.0], [0.0, 1.0]]));
    }
}
