//! CSV, TSV and aligned text. CSV and TSV hold only names and rows, so every program can read them. The manifest and
//! everything that columns cannot express are in a file beside them (`beside.rs`). In aligned text they are comment
//! lines, `# key: value`, behind the line of names, which `numpy.genfromtxt(names=True)` looks for in the first one.

use std::io::Write;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::cells::{CellColumn, is_number, words as words_of, written};
use super::check::Summed;
use super::json::about_table;
use super::{FileData, WrittenColumn, beside, check, complex, joined, parts};
use crate::error::{Error, Result};
use crate::number::{Column, Table, memory};
use crate::output::Manifest;

/// What separates the numbers of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Separator {
    /// By commas.
    Csv,
    /// By tabulators.
    Tsv,
    /// By blanks, in columns; the names are a comment, so that `numpy.loadtxt` and gnuplot read it.
    Aligned,
}

impl Separator {
    fn delimiter(self) -> u8 {
        if self == Separator::Csv { b',' } else { b'\t' }
    }
}

/// What is said of a table besides its numbers.
fn about(data: &FileData, table: &Table) -> Map<String, Value> {
    let mut about = Map::new();
    about.insert("kind".into(), json!(data.kind()));
    about.extend(about_table(table));
    let texts: Vec<&str> =
        table.columns().filter(|(_, c)| matches!(c, Column::Texts(_))).map(|(name, _)| name).collect();
    if !texts.is_empty() {
        about.insert("texts".into(), json!(texts));
    }
    if table.names().any(|name| !plain(name)) {
        about.insert("columns".into(), table.names().collect());
    }
    about
}

/// The comment lines of aligned text, with the words of the line of names under which texts stand.
fn head(data: &FileData, table: &Table, texts: &[&str], manifest: Option<&Manifest>) -> Vec<String> {
    let mut lines = manifest.map_or(Vec::new(), Manifest::lines);
    lines.push(CHECKED.into());
    let mut about = about(data, table);
    if !texts.is_empty() {
        about.insert("texts".into(), json!(texts));
    }
    for (key, value) in about {
        lines.push(match (key.as_str(), &value) {
            ("kind" | "title", Value::String(text)) => format!("{key}: {}", text.replace(['\n', '\r'], " ")),
            ("grid", Value::Array(sides)) if sides.len() == 2 => format!("grid: {} x {}", sides[0], sides[1]),
            _ => format!("{key}: {value}"),
        });
    }
    lines
}

/// Whether a name comes back as it was from a line of names: in one word, no comment, no part of a complex column.
fn plain(name: &str) -> bool {
    !name.contains(|c: char| c.is_whitespace() || c.is_control() || matches!(c, '#' | '"' | ',' | '\u{feff}'))
        && !name.ends_with(".re")
        && !name.ends_with(".im")
}

/// Writes the data as text. Numbers keep all their digits.
pub fn save(data: &FileData, path: &Path, manifest: Option<&Manifest>, layout: Separator) -> Result<()> {
    let table = data.to_table()?;
    let columns: Vec<(String, WrittenColumn)> =
        table.columns().flat_map(|(name, data)| parts(name, data)).collect();
    if layout == Separator::Aligned {
        return super::write_atomically(path, |out| {
            let mut out = Summed::new(out);
            let words = words(columns.iter().map(|(name, _)| name.as_str()));
            let names: Vec<String> = words.iter().map(|word| format!("{word:>24}")).collect();
            let held =
                words.iter().zip(&columns).filter(|(_, (_, data))| matches!(data, WrittenColumn::Texts(_)));
            let texts: Vec<&str> = held.map(|(word, _)| word.as_str()).collect();
            writeln!(out, "# {}", names.join(" ").trim_start())?;
            for line in head(data, &table, &texts, manifest) {
                writeln!(out, "# {line}")?;
            }
            for i in 0..table.rows() {
                let cells: Vec<String> =
                    columns.iter().map(|(_, data)| format!("{:>24}", one_word(&written(data, i)))).collect();
                writeln!(out, "{}", cells.join(" "))?;
            }
            end(out)
        });
    }
    let mut sum = String::new();
    super::write_atomically(path, |out| {
        let mut out = Summed::new(out);
        // Without quotes a name that begins with `#` would make a comment of the line,
        // and one with a byte-order mark lose it.
        let comment = columns
            .iter()
            .any(|(name, _)| name.trim_start().starts_with('#') || name.starts_with('\u{feff}'));
        let quotes = if comment { csv::QuoteStyle::Always } else { csv::QuoteStyle::Necessary };
        let writer = |quotes| {
            let mut builder = csv::WriterBuilder::new();
            // A text that begins with `#` stands in quotes, too.
            builder.delimiter(layout.delimiter()).quote_style(quotes).comment(Some(b'#'));
            builder
        };
        let mut names = writer(quotes).from_writer(&mut out);
        names.write_record(columns.iter().map(|(name, _)| name)).map_err(of_csv)?;
        names.flush()?;
        drop(names);
        let mut writer = writer(csv::QuoteStyle::Necessary).from_writer(&mut out);
        for i in 0..table.rows() {
            writer.write_record(columns.iter().map(|(_, data)| written(data, i))).map_err(of_csv)?;
        }
        writer.flush()?;
        drop(writer);
        out.flush()?;
        sum = out.finish().0;
        // Last, since the older file is still there after a failure. A file without its description is a file; a
        // description of another one is not.
        beside::remove(path)
    })?;
    beside::save(path, about(data, &table), manifest, &sum)
}

/// The error of the file behind a writer of rows, so that a full disk is still known as one.
fn of_csv(error: csv::Error) -> std::io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => std::io::Error::other(format!("{other:?}")),
    }
}

/// What the head says of the check, and of the names.
const CHECKED: &str = "check: crc32 in the last line, names in the first";
/// What it said when the names stood behind it.
const CHECKED_BEFORE: &str = "check: crc32 in the last line";

/// What stands before the check.
const CHECK: &str = "# crc32: ";

fn end(out: Summed<'_>) -> std::io::Result<()> {
    let (sum, out) = out.finish();
    writeln!(out, "{CHECK}{sum}")
}

/// A text without its check, if its head or its last line says that it has one, and whether it has.
fn checked(text: &str) -> Result<(&str, bool)> {
    let body = text.trim_end();
    let start = body.rfind('\n').map_or(0, |at| at + 1);
    let heads = || text.lines().map_while(|line| line.strip_prefix("# "));
    match body[start..].strip_prefix(CHECK) {
        Some(said) => {
            let whole = &text[..start];
            let found = check::of(whole.as_bytes());
            // Some programs end lines otherwise.
            if said == found || said == check::of(whole.replace("\r\n", "\n").as_bytes()) {
                return Ok((whole, true));
            }
            Err(check::wrong(&found, said))
        }
        None if heads().any(|line| [CHECKED, CHECKED_BEFORE].contains(&line)) => Err(Error::file(
            "its last line, the check, is missing",
        )
        .hint(
            "the file is cut short; to read a file that was changed on purpose, remove the check from its head",
        )),
        None => Ok((text, false)),
    }
}

/// A name or a text without blanks between its letters, and without the sign of a comment.
fn one_word(name: &str) -> String {
    let word = name.replace(|c: char| c.is_whitespace() || c.is_control() || c == '#', "_");
    if word.is_empty() { "_".into() } else { word }
}

/// The names as words, no two alike: `a b` beside `a_b` is `a_b_2`.
fn words<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for name in names {
        let word = one_word(name);
        let mut other = word.clone();
        let mut count = 1;
        while words.contains(&other) {
            count += 1;
            other = format!("{word}_{count}");
        }
        words.push(other);
    }
    words
}

/// Whether a word of the line of names stands for this name.
fn stands_for(word: &str, name: &str) -> bool {
    let numbered = |rest: &str| rest.strip_prefix('_').is_some_and(|n| n.parse::<usize>().is_ok());
    word == name || word.strip_prefix(&one_word(name)).is_some_and(|rest| rest.is_empty() || numbered(rest))
}

/// What the comment lines of a file say.
#[derive(Default)]
struct CommentHeader {
    kind: String,
    /// The names of a table's columns, where the line of names cannot say them.
    columns: Option<Vec<String>>,
    /// The names of those that hold texts.
    texts: Vec<String>,
    title: Option<String>,
    grid: Option<(usize, usize)>,
    report: Option<serde_json::Map<String, serde_json::Value>>,
    last: String,
}

impl CommentHeader {
    fn of(text: &str) -> CommentHeader {
        let mut head = CommentHeader::default();
        let lines = || text.lines().map_while(|line| line.trim_start().strip_prefix('#')).map(str::trim);
        let first = lines().any(|line| line == CHECKED);
        for (number, line) in lines().enumerate() {
            if !first || number == 0 {
                head.last = line.to_string();
            }
            if first && number == 0 {
                continue;
            }
            let Some((key, value)) = line.split_once(": ") else { continue };
            match key {
                "kind" => head.kind = value.to_string(),
                "title" => head.title = Some(value.to_string()),
                "grid" => {
                    head.grid =
                        value.split_once(" x ").and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
                }
                "report" => head.report = serde_json::from_str(value).ok(),
                "columns" => head.columns = serde_json::from_str(value).ok(),
                "texts" => head.texts = serde_json::from_str(value).unwrap_or_default(),
                _ => {}
            }
        }
        head
    }

    /// What stands beside the file.
    fn beside(about: &Map<String, Value>) -> CommentHeader {
        let text = |key: &str| about.get(key).and_then(Value::as_str).map(str::to_string);
        let list = |key: &str| -> Option<Vec<String>> {
            let names = about.get(key)?.as_array()?.iter();
            Some(names.filter_map(|name| name.as_str().map(str::to_string)).collect())
        };
        let side = |k: usize| about.get("grid")?.get(k)?.as_u64().and_then(|n| usize::try_from(n).ok());
        CommentHeader {
            kind: text("kind").unwrap_or_default(),
            columns: list("columns"),
            texts: list("texts").unwrap_or_default(),
            title: text("title"),
            grid: side(0).zip(side(1)),
            report: about.get("report").and_then(Value::as_object).cloned(),
            last: String::new(),
        }
    }
}

/// How a text is read, and what its reader found.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TextReading {
    /// Whether the first line of another program's file has the names of columns; where nobody says, its cells tell.
    pub header: Option<bool>,
    /// Whether the first line, read as numbers, may have been names.
    pub unsure: bool,
}

/// Reads text: with or without a line of names, by this program or another.
pub fn load(path: &Path, layout: Separator, told: &mut TextReading) -> Result<FileData> {
    let bytes = memory::read(path).map_err(|e| Error::of_io(&e))?;
    let text = String::from_utf8(bytes.clone()).map_err(|_| Error::file("it is not text (UTF-8)"))?;
    // Some programs begin a text with a byte-order mark, which belongs to no name and no number.
    let (text, whole) = checked(text.strip_prefix('\u{feff}').unwrap_or(&text))?;
    let described = if layout == Separator::Aligned { None } else { beside::load(path, &bytes)? };
    let mut head = described.map_or_else(|| CommentHeader::of(text), |about| CommentHeader::beside(&about));
    if layout == Separator::Aligned {
        // Version 0.1 wrote the names here, not the words.
        head.texts.iter_mut().for_each(|name| *name = one_word(name));
    }
    // A table without columns is a record of one empty cell.
    let mut lines = text.lines().rev();
    let nothing = lines.next() == Some("\"\"") && lines.all(|line| line.starts_with('#'));
    if layout != Separator::Aligned && head.kind == "table" && nothing {
        return FileData::from_table(Table::new(), &head.kind);
    }
    let (names, columns) = if layout == Separator::Aligned {
        aligned(text, &head, whole, told)?
    } else {
        separated(text, layout, &head, told)?
    };
    let columns: Vec<_> = names.into_iter().zip(columns).collect();
    let mut table = match &head.columns {
        Some(names) => named(names, columns)?,
        None => joined(columns)?,
    };
    if let Some(title) = head.title {
        table = table.with_title(title);
    }
    for (key, value) in head.report.unwrap_or_default() {
        table = table.with_report(key, value);
    }
    // If rows were removed from a grid, the rest is a table without a grid.
    if let Some((nx, ny)) = head.grid {
        table = table.clone().with_grid(nx, ny).unwrap_or(table);
    }
    FileData::from_table(table, &head.kind)
}

type TextColumns = (Vec<String>, Vec<Column>);

impl CommentHeader {
    /// Empty columns for these names, or for so many without names: of this program as the head says, of another one
    /// as their cells will tell.
    fn kinds(&self, names: &[String], count: usize) -> Vec<CellColumn> {
        let ours = !self.kind.is_empty();
        let kind = |j: usize| match names.get(j).is_some_and(|name| self.is_text(name)) {
            true => CellColumn::Texts(Vec::new()),
            false if ours => CellColumn::Numbers(Vec::new()),
            false => CellColumn::Open(Vec::new()),
        };
        (0..count).map(kind).collect()
    }

    /// Whether the head says that this column holds texts.
    fn is_text(&self, found: &str) -> bool {
        self.texts.iter().any(|name| found == name)
    }
}

/// A table of these columns, each of one column of a file or of a real and an imaginary one.
fn named(names: &[String], columns: Vec<(String, Column)>) -> Result<Table> {
    let differ = || Error::file("its columns are not those that its head names");
    let mut table = Table::new();
    let mut columns = columns.into_iter();
    for name in names {
        let (found, data) = columns.next().ok_or_else(differ)?;
        if stands_for(&found, name) {
            table = table.with_column(name.as_str(), data)?;
            continue;
        }
        let (next, im) = columns.next().ok_or_else(differ)?;
        if !stands_for(&found, &format!("{name}.re")) || !stands_for(&next, &format!("{name}.im")) {
            return Err(differ());
        }
        table = table.with_column(name.as_str(), complex(&data, &im).ok_or_else(differ)?)?;
    }
    if columns.next().is_some() { Err(differ()) } else { Ok(table) }
}

fn numbered(n: usize) -> Vec<String> {
    (0..n).map(|i| format!("column{i}")).collect()
}

/// The names in the first row of another program's table: pandas leaves that of its index empty.
fn given_names<'a>(cells: impl Iterator<Item = &'a str>) -> Vec<String> {
    let cells: Vec<&str> = cells.map(str::trim).collect();
    let name = |(j, cell): (usize, &&str)| match *cell {
        "" if j == 0 && !cells.contains(&"index") => "index".to_string(),
        "" => format!("column{j}"),
        cell => cell.to_string(),
    };
    cells.iter().enumerate().map(name).collect()
}

/// What a first row of whole numbers 0, 1, 2, .. is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CountedRow {
    /// The names of columns: no other cell holds a whole number.
    Names,
    /// Numbers, which may be names.
    Unsure,
    Numbers,
}

/// Whether a first row counts the columns, as pandas, R and others name them that have no names.
fn counted(first: &csv::StringRecord, others: &mut dyn Iterator<Item = csv::StringRecord>) -> CountedRow {
    let counts = first.len() > 1 && first.iter().enumerate().all(|(j, cell)| cell.trim() == j.to_string());
    if !counts {
        return CountedRow::Numbers;
    }
    let whole = |cell: &str| cell.trim().parse::<i64>().is_ok();
    let mut rows = 0;
    let mut without = true;
    for row in others {
        rows += 1;
        without &= !row.iter().any(whole);
    }
    match (rows > 0 && without, first.len()) {
        // Two numbers may well be a point: x = 0, y = 1.
        (true, 2) => CountedRow::Unsure,
        (true, _) => CountedRow::Names,
        (false, 2) => CountedRow::Numbers,
        (false, _) => CountedRow::Unsure,
    }
}

fn separated(
    text: &str,
    layout: Separator,
    head: &CommentHeader,
    told: &mut TextReading,
) -> Result<TextColumns> {
    // Only files of this program name their kind.
    let ours = !head.kind.is_empty();
    let reader = || {
        let mut reader = csv::ReaderBuilder::new();
        reader.delimiter(layout.delimiter()).comment(Some(b'#')).has_headers(false).flexible(true);
        reader.from_reader(text.as_bytes())
    };
    let mut names: Vec<String> = Vec::new();
    let mut columns: Option<Vec<CellColumn>> = None;
    let mut width = 0;
    for (i, record) in reader().records().enumerate() {
        let record = record.map_err(|e| Error::file(e.to_string()))?;
        let line = record.position().map_or(0, |p| p.line());
        if i == 0 {
            width = record.len();
            // Other programs write the names as a comment: `# x,y`.
            let words: Vec<&str> = head.last.split(char::from(layout.delimiter())).map(str::trim).collect();
            let commented = !head.last.is_empty() && words.len() == record.len() && !head.last.contains(": ");
            let named = match told.header {
                Some(named) if !ours => named,
                _ if !record.iter().all(is_number) => true,
                _ if ours || commented => ours && !commented,
                _ => {
                    let counted =
                        counted(&record, &mut reader().into_records().skip(1).map_while(|r| r.ok()));
                    told.unsure |= counted == CountedRow::Unsure;
                    counted == CountedRow::Names
                }
            };
            if named {
                names = match ours {
                    true => record.iter().map(str::to_string).collect(),
                    false => given_names(record.iter()),
                };
                continue;
            }
            let bare = |word: &&str| word.trim_matches('"').to_string();
            let known = commented && words.iter().all(|word| !word.is_empty());
            names = if known { words.iter().map(bare).collect() } else { numbered(record.len()) };
        }
        if record.len() != width {
            let given = record.len();
            return Err(Error::file(format!("line {line} has {given} cells where {width} should be")));
        }
        let columns = columns.get_or_insert_with(|| head.kinds(&names, width));
        for (j, (to, cell)) in columns.iter_mut().zip(record.iter()).enumerate() {
            to.add(cell, line, j)?;
        }
    }
    if width == 0 {
        return Err(Error::file("there are no numbers in it"));
    }
    // A table without rows.
    let columns = columns.unwrap_or_else(|| head.kinds(&names, width));
    Ok((names, columns.into_iter().map(CellColumn::finish).collect()))
}

fn aligned(text: &str, head: &CommentHeader, whole: bool, told: &TextReading) -> Result<TextColumns> {
    let ours = !head.kind.is_empty();
    let mut words: Vec<String> = head.last.split_whitespace().map(str::to_string).collect();
    let mut columns: Vec<CellColumn> = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default();
        let cells: Vec<String> = match ours {
            true => line.split_whitespace().map(str::to_string).collect(),
            false => words_of(line),
        };
        if cells.is_empty() {
            continue;
        }
        // A first row of words, of which none is a number, has the names, as in CSV.
        let words_alone = || cells.iter().all(|cell| !is_number(cell));
        if columns.is_empty() && !whole && !ours && told.header != Some(false) {
            let behind = || text.lines().nth(i + 1).is_some_and(|next| words_of(next).len() == cells.len());
            let named = words.len() != cells.len() && words_alone() && behind();
            if told.header == Some(true) || named {
                words = cells;
                columns = head.kinds(&words, words.len());
                continue;
            }
        }
        if columns.is_empty() {
            let names: &[String] = if words.len() == cells.len() { &words } else { &[] };
            columns = head.kinds(names, cells.len());
        }
        if cells.len() != columns.len() {
            let (given, wanted) = (cells.len(), columns.len());
            return Err(Error::file(format!("line {} has {given} cells where {wanted} should be", i + 1)));
        }
        for (j, cell) in cells.iter().enumerate() {
            columns[j].add(cell, i as u64 + 1, j)?;
        }
    }
    // A file of this program with names alone is a table without rows.
    if columns.is_empty() && !whole {
        return Err(Error::file("there are no numbers in it"));
    }
    if columns.is_empty() {
        columns = head.kinds(&words, words.len());
    }
    let names = if words.len() == columns.len() { words } else { numbered(columns.len()) };
    Ok((names, columns.into_iter().map(CellColumn::finish).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_known_behind_a_writer_of_rows() {
        let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
        assert_eq!(of_csv(csv::Error::from(full)).kind(), std::io::ErrorKind::StorageFull);
    }
}
