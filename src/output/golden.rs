//! Compares texts with what is expected: words exactly, numbers within a tolerance, any run of blanks as one (columns
//! move with the width of a number).

/// How far numbers may lie apart: |a - b| <= absolute + relative * max(|a|, |b|).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tolerance {
    /// Relative part.
    pub relative: f64,
    /// Absolute part.
    pub absolute: f64,
}

impl Default for Tolerance {
    fn default() -> Self {
        Tolerance { relative: 1e-9, absolute: 1e-12 }
    }
}

impl Tolerance {
    /// How far two numbers lie apart, as a fraction of what is allowed.
    fn fraction(&self, a: f64, b: f64) -> f64 {
        if a == b || (a.is_nan() && b.is_nan()) {
            return 0.0;
        }
        let allowed = self.absolute + self.relative * a.abs().max(b.abs());
        let fraction = (a - b).abs() / allowed;
        if fraction.is_nan() { f64::INFINITY } else { fraction }
    }

    fn same(&self, a: f64, b: f64) -> bool {
        self.fraction(a, b) <= 1.0
    }
}

/// Two numbers of texts that are compared, and how far they lie apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Deviation {
    /// The line of the expected text, from 1.
    pub line: usize,
    pub expected: f64,
    pub found: f64,
    /// Their distance as a fraction of the tolerance.
    pub fraction: f64,
}

/// The largest deviation between lines that have the same words, line by line; none where no number differs.
pub fn deviation(expected: &str, found: &str, tolerance: Tolerance) -> Option<Deviation> {
    let mut worst: Option<Deviation> = None;
    for (number, (a, b)) in expected.lines().zip(found.lines()).enumerate() {
        let (a, b) = (pieces(a), pieces(b));
        let words = |p: &[GoldenToken<'_>]| -> Vec<String> {
            p.iter()
                .map(|p| if let GoldenToken::Text(text) = p { text.to_string() } else { String::new() })
                .collect()
        };
        if words(&a) != words(&b) {
            continue;
        }
        for pair in a.iter().zip(&b) {
            let (GoldenToken::Number(x), GoldenToken::Number(y)) = pair else { continue };
            let fraction = tolerance.fraction(*x, *y);
            if fraction > worst.map_or(0.0, |w| w.fraction) {
                worst = Some(Deviation { line: number + 1, expected: *x, found: *y, fraction });
            }
        }
    }
    worst
}

/// A piece of a line.
#[derive(Debug, PartialEq)]
enum GoldenToken<'a> {
    Text(&'a str),
    Blank,
    Number(f64),
}

/// Splits a line into texts, blanks and numbers.
fn pieces(line: &str) -> Vec<GoldenToken<'_>> {
    let bytes = line.as_bytes();
    let (mut at, mut text) = (0, 0);
    let mut found: Vec<GoldenToken<'_>> = Vec::new();
    while at < bytes.len() {
        if bytes[at] == b' ' || bytes[at] == b'\t' {
            flush(line, &mut found, text, at);
            while at < bytes.len() && (bytes[at] == b' ' || bytes[at] == b'\t') {
                at += 1;
            }
            found.push(GoldenToken::Blank);
            text = at;
        } else if let Some(length) = number_at(bytes, at)
            && let Ok(number) = line[at..at + length].parse()
        {
            flush(line, &mut found, text, at);
            found.push(GoldenToken::Number(number));
            at += length;
            text = at;
        } else {
            at += 1;
        }
    }
    flush(line, &mut found, text, bytes.len());
    while found.last() == Some(&GoldenToken::Blank) {
        found.pop();
    }
    found
}

fn flush<'a>(line: &'a str, found: &mut Vec<GoldenToken<'a>>, from: usize, to: usize) {
    if from < to {
        found.push(GoldenToken::Text(&line[from..to]));
    }
}

/// The length of a number that starts at a byte, unless it stands inside a word.
fn number_at(bytes: &[u8], at: usize) -> Option<usize> {
    let inside = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'.' || b >= 0x80;
    let before = at.checked_sub(1).map(|k| bytes[k]);
    let mut end = at;
    if matches!(bytes[at], b'+' | b'-') {
        // After a word or a bracket it is an operator.
        if before.is_some_and(|b| inside(b) || b == b')' || b == b']') {
            return None;
        }
        end += 1;
    } else if before.is_some_and(inside) {
        return None;
    }
    let digits = |from: usize| bytes[from..].iter().take_while(|b| b.is_ascii_digit()).count();
    let whole = digits(end);
    if whole == 0 {
        return None;
    }
    end += whole;
    if bytes.get(end) == Some(&b'.') && digits(end + 1) > 0 {
        end += 1 + digits(end + 1);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = bytes.get(end + 1 + sign).map_or(0, |_| digits(end + 1 + sign));
        if exponent > 0 {
            end += 1 + sign + exponent;
        }
    }
    Some(end - at)
}

/// Whether two lines say the same.
fn same_line(expected: &str, found: &str, tolerance: Tolerance) -> bool {
    if expected == found {
        return true;
    }
    let (a, b) = (pieces(expected), pieces(found));
    a.len() == b.len()
        && a.iter().zip(&b).all(|pair| match pair {
            (GoldenToken::Number(x), GoldenToken::Number(y)) => tolerance.same(*x, *y),
            (x, y) => x == y,
        })
}

/// Lines that a difference shows at most.
const SHOWN: usize = 60;

/// The lines where two texts differ, `-` what was expected, `+` what was found, each with its number in its own text,
/// and a line of context; none if they say the same.
pub fn difference(expected: &str, found: &str, tolerance: Tolerance) -> Option<String> {
    let a: Vec<&str> = expected.trim_end().lines().collect();
    let b: Vec<&str> = found.trim_end().lines().collect();
    let same = |i: usize, j: usize| same_line(a[i], b[j], tolerance);
    if a.len() == b.len() && (0..a.len()).all(|i| same(i, i)) {
        return None;
    }
    let edits = edits(a.len(), b.len(), same);
    let digits = a.len().max(b.len()).to_string().len();
    let line = |mark: char, number: usize, text: &str| format!("{mark} {:digits$} {text}\n", number + 1);
    let mut shown: Vec<String> = Vec::new();
    let mut quiet_until = 0;
    for (k, edit) in edits.iter().enumerate() {
        let near = |k: usize| edits.get(k).is_some_and(|e| !matches!(e, Edit::Keep(_)));
        match *edit {
            Edit::Keep(i) if near(k + 1) || (k > 0 && near(k - 1)) => {
                if quiet_until != k && k > 0 {
                    shown.push("  ...\n".into());
                }
                shown.push(line(' ', i, a[i]));
                quiet_until = k + 1;
            }
            Edit::Keep(_) => {}
            Edit::Remove(i) => {
                shown.push(line('-', i, a[i]));
                quiet_until = k + 1;
            }
            Edit::Add(j) => {
                shown.push(line('+', j, b[j]));
                quiet_until = k + 1;
            }
        }
    }
    if shown.len() > SHOWN {
        let more = format!("  ... and {} lines more\n", shown.len() - SHOWN);
        shown.truncate(SHOWN);
        shown.push(more);
    }
    Some(shown.concat())
}

#[derive(Clone, Copy)]
enum Edit {
    Keep(usize),
    Remove(usize),
    Add(usize),
}

/// The shortest way from one list of lines to another; line by line where the lists are too long for that.
fn edits(n: usize, m: usize, same: impl Fn(usize, usize) -> bool) -> Vec<Edit> {
    let mut edits = Vec::new();
    if n.saturating_mul(m) > 4_000_000 {
        for i in 0..n.max(m) {
            if i < n && i < m && same(i, i) {
                edits.push(Edit::Keep(i));
                continue;
            }
            edits.extend((i < n).then_some(Edit::Remove(i)));
            edits.extend((i < m).then_some(Edit::Add(i)));
        }
        return edits;
    }
    // longest[i][j]: lines in common from i and j on.
    let mut longest = vec![vec![0u32; m + 1]; n + 1];
    let mut equal = vec![false; n * m];
    for i in (0..n).rev() {
        for j in (0..m).rev() {
            equal[i * m + j] = same(i, j);
            longest[i][j] = if equal[i * m + j] {
                longest[i + 1][j + 1] + 1
            } else {
                longest[i + 1][j].max(longest[i][j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    while i < n || j < m {
        if i < n && j < m && equal[i * m + j] {
            edits.push(Edit::Keep(i));
            (i, j) = (i + 1, j + 1);
        } else if i < n && (j == m || longest[i + 1][j] >= longest[i][j + 1]) {
            edits.push(Edit::Remove(i));
            i += 1;
        } else {
            edits.push(Edit::Add(j));
            j += 1;
        }
    }
    edits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_within_the_tolerance_and_text_exactly() {
        let same = |a, b| same_line(a, b, Tolerance::default());
        assert!(same("E = -1.0000000000001, done", "E = -1, done"));
        assert!(!same("E = -1.00001", "E = -1"));
        assert!(same("  1.0   2.0e-3", "  1.0 0.002"));
        assert!(same("1e-14 + 2i", "-3e-15 + 2i"));
        assert!(!same("x1 = 2", "x2 = 2") && !same("E = 1", "F = 1"));
        assert!(!same("3 - 4", "3 + 4") && !same("[1, 2]", "[1, 2, 3]"));
        assert!(same("µ=0.5 Å", "µ=0.50 Å") && !same("µ=0.5 Å", "µ=0.5 m"));
        let loose = Tolerance { relative: 1e-2, absolute: 0.0 };
        assert!(same_line("100", "100.5", loose) && !same_line("100", "102", loose));
    }

    #[test]
    fn a_difference_shows_the_lines_that_differ() {
        let expected = "one\ntwo 2.0\nthree\nfour\nfive\n";
        assert_eq!(
            difference(expected, "one\ntwo 2.0000000000001\nthree\nfour\nfive", Tolerance::default()),
            None
        );
        let shown =
            difference(expected, "one\ntwo 2.1\nthree\nfour\nfive\nsix", Tolerance::default()).unwrap();
        assert_eq!(shown, "  1 one\n- 2 two 2.0\n+ 2 two 2.1\n  3 three\n  ...\n  5 five\n+ 6 six\n");
        let many: String = (0..500).map(|i| format!("{i}\n")).collect();
        let shown = difference(&many, &many.replace('1', "one "), Tolerance::default()).unwrap();
        assert!(shown.lines().count() == SHOWN + 1 && shown.ends_with(" lines more\n"), "{shown}");
    }

    #[test]
    fn the_largest_deviation_is_measured_in_tolerances() {
        let tolerance = Tolerance { relative: 0.0, absolute: 0.1 };
        let worst = deviation("a 1.0\nb 2.0 3.0\nc 4", "a 1.05\nb 2.0 3.2\nd 9", tolerance).unwrap();
        assert_eq!((worst.line, worst.expected, worst.found), (2, 3.0, 3.2));
        assert!((worst.fraction - 2.0).abs() < 1e-9);
        assert_eq!(deviation("a 1.0 NaN", "a 1.0 NaN", tolerance), None);
        // With a tolerance of zero, equal numbers deviate by nothing.
        let exact = Tolerance { relative: 0.0, absolute: 0.0 };
        assert_eq!(deviation("x 0", "x 0", exact), None);
    }
}
