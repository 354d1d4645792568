//! The cells of text files, one by one and as columns. Other programs leave cells empty, write numbers as Fortran does,
//! and complex numbers in several ways.

use super::WrittenColumn;
use crate::error::{Error, Result};
use crate::number::{C64, Column, Series};

/// What other programs write where there is no number: R, pandas and databases.
const MISSING: [&str; 7] = ["", "NA", "N/A", "<NA>", "None", "null", "NULL"];

/// A real number as Rust, C and Fortran write it: `1e-3`, `1.0D-03`, `1.0-103`.
fn real(cell: &str) -> Option<f64> {
    if let Ok(x) = cell.parse() {
        return Some(x);
    }
    // Fortran writes a point always; without it `2d3` may be a name.
    let exponent = cell.rfind(['d', 'D', '+', '-']).filter(|&at| cell[..at].contains('.'))?;
    let (mantissa, power) = cell.split_at(exponent);
    let (mantissa, power) = match (mantissa.strip_suffix(['d', 'D']), power.strip_prefix(['d', 'D'])) {
        (Some(mantissa), None) => (mantissa, power),
        (None, Some(power)) => (mantissa, power),
        // The letter is left out where the power takes three digits.
        (None, None) if power.len() == 4 => (mantissa, power),
        _ => return None,
    };
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit() || b"+-.".contains(&b));
    if !digits(mantissa) || !digits(power) {
        return None;
    }
    format!("{mantissa}e{power}").parse().ok()
}

/// A complex number as Python writes it, `(1+2j)`, or Fortran, `(1.0,2.0)`.
fn complex(cell: &str) -> Option<C64> {
    let inner = cell.strip_prefix('(').and_then(|cell| cell.strip_suffix(')'));
    if let Some((re, im)) = inner.and_then(|inner| inner.split_once(',')) {
        return Some(C64::new(real(re.trim())?, real(im.trim())?));
    }
    let text = inner.unwrap_or(cell).trim();
    let text = text.strip_suffix('j').or_else(|| inner.and(text.strip_suffix('i')))?;
    // The sign between the parts: not the first letter, and not that of an exponent.
    let bytes = text.as_bytes();
    let sign = (1..bytes.len())
        .rev()
        .find(|&at| matches!(bytes[at], b'+' | b'-') && !matches!(bytes[at - 1], b'e' | b'E' | b'+' | b'-'));
    let Some(sign) = sign else { return Some(C64::new(0.0, real(text)?)) };
    // NumPy once wrote `1+-2j`.
    let im = text[sign..].strip_prefix("+-").map_or_else(|| real(&text[sign..]), |im| real(im).map(|x| -x));
    Some(C64::new(real(&text[..sign])?, im?))
}

/// Whether a cell of any program holds a number.
pub(super) fn is_number(cell: &str) -> bool {
    let cell = cell.trim();
    real(cell).is_some() || complex(cell).is_some()
}

/// The words of a line between blanks; those of a complex number in parentheses are one.
pub(super) fn words(line: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut open: Option<usize> = None;
    for word in line.split_whitespace() {
        words.push(word.to_string());
        if word.starts_with('(') && !word.contains(')') {
            open = Some(words.len() - 1);
        } else if let Some(from) = open
            && word.ends_with(')')
        {
            let whole = words[from..].concat();
            if complex(&whole).is_some() {
                words.truncate(from);
                words.push(whole);
            }
            open = None;
        }
    }
    words
}

/// A column of a text file while it is read.
pub(super) enum CellColumn {
    /// Of this program: numbers.
    Numbers(Vec<f64>),
    /// Of another program: what its first cell with something in it will tell. The cells so far have nothing.
    Open(Vec<String>),
    /// Of another program: numbers.
    Real(Vec<f64>),
    Complex(Vec<C64>),
    Texts(Vec<String>),
}

impl CellColumn {
    /// Adds the cell of a line.
    pub fn add(&mut self, cell: &str, line: u64, column: usize) -> Result<()> {
        if let CellColumn::Texts(data) = self {
            data.push(cell.to_string());
            return Ok(());
        }
        let word = cell.trim();
        let wrong = || {
            let what = if word.is_empty() { "nothing".to_string() } else { format!("`{word}`") };
            Error::file(format!("line {line}, column {}: {what} where a number should be", column + 1))
        };
        let missing = MISSING.contains(&word);
        match self {
            CellColumn::Numbers(data) => data.push(word.parse().map_err(|_| wrong())?),
            CellColumn::Open(data) if missing => data.push(cell.to_string()),
            CellColumn::Open(data) => {
                *self = if is_number(word) {
                    CellColumn::Real(vec![f64::NAN; data.len()])
                } else {
                    CellColumn::Texts(std::mem::take(data))
                };
                return self.add(cell, line, column);
            }
            CellColumn::Real(data) => match real(word).or(missing.then_some(f64::NAN)) {
                Some(x) => data.push(x),
                None => {
                    let z = complex(word).ok_or_else(wrong)?;
                    let mut all: Vec<C64> = data.iter().map(|&x| C64::new(x, 0.0)).collect();
                    all.push(z);
                    *self = CellColumn::Complex(all);
                }
            },
            CellColumn::Complex(data) => {
                let z = complex(word).or_else(|| real(word).map(|x| C64::new(x, 0.0)));
                data.push(z.or(missing.then_some(C64::new(f64::NAN, 0.0))).ok_or_else(wrong)?);
            }
            CellColumn::Texts(data) => data.push(cell.to_string()),
        }
        Ok(())
    }

    /// The whole column. One without any number or text has numbers.
    pub fn finish(self) -> Column {
        match self {
            CellColumn::Numbers(data) | CellColumn::Real(data) => data.into(),
            CellColumn::Open(data) => vec![f64::NAN; data.len()].into(),
            CellColumn::Complex(data) => Series::Complex(data).into(),
            CellColumn::Texts(data) => data.into(),
        }
    }
}

/// What stands in row `i` of a column.
pub(super) fn written(data: &WrittenColumn, i: usize) -> String {
    match data {
        // `{:?}` is the shortest text that reads back as the same number.
        WrittenColumn::Numbers(data) => format!("{:?}", data[i]),
        WrittenColumn::Texts(data) => data[i].clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_other_programs() {
        for (text, x) in [
            ("1.0D-03", 1e-3),
            ("-1.5d+2", -150.0),
            ("0.25-102", 0.25e-102),
            ("1.0+300", 1e300),
            ("-.5D0", -0.5),
            ("1e-3", 1e-3),
            ("7", 7.0),
        ] {
            assert_eq!(real(text), Some(x), "{text}");
        }
        let names = [
            "2d3",
            "d",
            "1.0D",
            "1.0-",
            "1.2.3",
            "a.b-1",
            "2024-01-02",
            "1.0D1D2",
            "+",
            "1-2",
            "1.5-2",
            "1.5DD2",
        ];
        for text in names {
            assert_eq!(real(text), None, "{text}");
        }
        for (text, re, im) in [
            ("(1+2j)", 1.0, 2.0),
            ("(1.000e+00-2.000e-01j)", 1.0, -0.2),
            ("(1.0e+00+-2.0e+00j)", 1.0, -2.0),
            ("-1e-3-2e-4j", -1e-3, -2e-4),
            ("2j", 0.0, 2.0),
            ("-2j", 0.0, -2.0),
            ("(1.0,-2.0D0)", 1.0, -2.0),
            ("( 1.0, 2.0 )", 1.0, 2.0),
            ("(0.5+2i)", 0.5, 2.0),
            ("(inf-1j)", f64::INFINITY, -1.0),
        ] {
            assert_eq!(complex(text), Some(C64::new(re, im)), "{text}");
        }
        for text in ["j", "(j)", "", "()", "(1)", "1.0", "(a,b)", "1+2", "2i", "ij", "(1,2,3)"] {
            assert_eq!(complex(text), None, "{text}");
        }
        assert_eq!(words(" ( 1.0, 2.0)  (3.0,4.0) x (a b)"), ["(1.0,2.0)", "(3.0,4.0)", "x", "(a", "b)"]);
    }
}
