//! Places in a text: bytes here, lines and UTF-16 units in the protocol.

use lsp_types::{Position, Range};

/// The byte of a position; the end of the line or of the text where it lies beyond.
pub(super) fn byte(text: &str, at: Position) -> usize {
    let mut start = 0;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        if number == at.line as usize {
            let line = line.trim_end_matches(['\n', '\r']);
            let mut units = 0;
            for (byte, c) in line.char_indices() {
                if units >= at.character as usize {
                    return start + byte;
                }
                units += c.len_utf16();
            }
            return start + line.len();
        }
        start += line.len();
    }
    text.len()
}

/// The position of a byte.
pub(super) fn position(text: &str, byte: usize) -> Position {
    let before = &text[..byte.min(text.len())];
    let line = before.matches('\n').count();
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    let units: usize = before[start..].chars().map(char::len_utf16).sum();
    Position::new(line as u32, units as u32)
}

/// The range of bytes.
pub(super) fn range(text: &str, bytes: std::ops::Range<usize>) -> Range {
    Range::new(position(text, bytes.start), position(text, bytes.end))
}

/// The byte of a line and a column, both from 1 and counted in characters, as reports have them.
pub(super) fn of_report(text: &str, (line, column): (usize, usize)) -> usize {
    let mut start = 0;
    for (number, content) in text.split_inclusive('\n').enumerate() {
        if number + 1 == line {
            let content = content.trim_end_matches(['\n', '\r']);
            let offset =
                content.char_indices().nth(column.saturating_sub(1)).map_or(content.len(), |(b, _)| b);
            return start + offset;
        }
        start += content.len();
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_positions_agree() {
        let text = "let µ = 1;\n\"𝒂\" + x\r\n\nend";
        for (byte_, _) in text.char_indices().filter(|(_, c)| !matches!(c, '\r' | '\n')) {
            assert_eq!(byte(text, position(text, byte_)), byte_);
        }
        assert_eq!(position(text, text.find('x').unwrap()), Position::new(1, 7));
        assert_eq!(byte(text, Position::new(0, 99)), 11);
        assert_eq!(byte(text, Position::new(99, 0)), text.len());
        assert_eq!(of_report(text, (2, 7)), text.find('x').unwrap());
        assert_eq!(of_report(text, (3, 5)), text.find("\nend").unwrap());
    }
}
