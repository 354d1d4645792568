//! A drawn scene as a PDF page (ISO 32000-1): lines and shapes as they are, texts as texts in the fonts that every reader has, so
//! that other programs can change them.

use std::fmt::Write as _;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use kuva::render::color::Color;
use kuva::render::render::{PathData, Primitive, Scene, TextAnchor};

use super::letters::{HELVETICA, HELVETICA_BOLD, SYMBOL, TIMES, TIMES_BOLD, lowered};
use crate::error::{Error, Result};

/// Points of print in a pixel of a scene.
const POINT: f64 = 0.75;

/// A font of the page, by its place in the list of fonts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Font {
    Plain,
    Bold,
    Symbol,
}

/// Letters that stand side by side in one font, at one height.
#[derive(Debug, PartialEq)]
struct Run {
    font: Font,
    codes: Vec<u8>,
    /// 1 where letters are raised, -1 where they are lowered.
    shift: i8,
    /// Of letters of size 1.
    width: f64,
}

/// Raised and lowered letters are smaller by this, and stand higher or lower by such parts of the size.
const SMALL: f64 = 0.68;
const RAISED: f64 = 0.36;
const LOWERED: f64 = -0.16;

struct Page<'a> {
    out: String,
    /// Opacities that were used, in thousandths.
    opacities: Vec<u16>,
    serif: bool,
    scene: &'a Scene,
}

/// The scene as a document of one page; `serif` writes in Times, else in Helvetica.
///
/// # Errors
/// Shapes that this program's plots do not have.
pub(super) fn document(scene: &Scene, serif: bool) -> Result<Vec<u8>> {
    let mut page = Page { out: String::new(), opacities: Vec::new(), serif, scene };
    // Scenes count downwards from the upper left corner, in pixels.
    page.put(format_args!("{POINT} 0 0 -{POINT} 0 {} cm 1 j 1 J", number(scene.height * POINT)));
    if let Some(colour) = scene.background_color.as_deref().and_then(hex) {
        page.colour(colour, "rg");
        page.put(format_args!("0 0 {} {} re f", number(scene.width), number(scene.height)));
    }
    for element in &scene.elements {
        page.draw(element)?;
    }
    Ok(page.finish())
}

/// A number as PDF takes it, without an exponent.
fn number(x: f64) -> String {
    let text = format!("{x:.3}");
    match text.trim_end_matches('0').trim_end_matches('.') {
        "-0" => "0".to_string(),
        text => text.to_string(),
    }
}

fn hex(text: &str) -> Option<(u8, u8, u8)> {
    match text {
        "white" => return Some((255, 255, 255)),
        "black" => return Some((0, 0, 0)),
        _ => {}
    }
    let digits = text.strip_prefix('#').filter(|digits| digits.len() == 6)?;
    let part = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    Some((part(0)?, part(2)?, part(4)?))
}

fn rgb(colour: &Color) -> Option<(u8, u8, u8)> {
    match colour {
        Color::Rgb(r, g, b) => Some((*r, *g, *b)),
        Color::None => None,
        Color::Css(text) => hex(text).or(Some((0, 0, 0))),
    }
}

impl Page<'_> {
    fn put(&mut self, what: std::fmt::Arguments) {
        // Writing to a text cannot fail.
        let _ = self.out.write_fmt(what);
        self.out.push('\n');
    }

    fn colour(&mut self, (r, g, b): (u8, u8, u8), operator: &str) {
        let part = |x: u8| number(f64::from(x) / 255.0);
        self.put(format_args!("{} {} {} {operator}", part(r), part(g), part(b)));
    }

    fn opacity(&mut self, opacity: Option<f64>) {
        let thousandths = (opacity.unwrap_or(1.0).clamp(0.0, 1.0) * 1000.0).round() as u16;
        let at = self.opacities.iter().position(|known| *known == thousandths).unwrap_or_else(|| {
            self.opacities.push(thousandths);
            self.opacities.len() - 1
        });
        self.put(format_args!("/G{at} gs"));
    }

    /// Sets colours and paints the path that `shape` gives.
    fn paint(
        &mut self,
        fill: Option<&Color>,
        stroke: Option<(&Color, f64)>,
        opacity: Option<f64>,
        dashes: Option<&str>,
        shape: &str,
    ) {
        let fill = fill.and_then(rgb);
        let stroke = stroke.and_then(|(colour, width)| Some((rgb(colour)?, width)));
        if fill.is_none() && stroke.is_none() {
            return;
        }
        self.out.push_str("q\n");
        self.opacity(opacity);
        if let Some(colour) = fill {
            self.colour(colour, "rg");
        }
        if let Some((colour, width)) = stroke {
            self.colour(colour, "RG");
            self.put(format_args!("{} w", number(width)));
        }
        if let Some(dashes) = dashes {
            let dashes: Vec<String> =
                dashes.split([' ', ',']).filter_map(|x| x.parse::<f64>().ok().map(number)).collect();
            self.put(format_args!("[{}] 0 d 0 J", dashes.join(" ")));
        }
        let end = match (fill.is_some(), stroke.is_some()) {
            (true, true) => "B",
            (true, false) => "f",
            _ => "S",
        };
        self.put(format_args!("{shape} {end}\nQ"));
    }

    fn draw(&mut self, element: &Primitive) -> Result<()> {
        match element {
            Primitive::Circle { cx, cy, r, fill, fill_opacity, stroke, stroke_width } => {
                let line = stroke.as_ref().map(|colour| (colour, stroke_width.unwrap_or(1.0)));
                self.paint(Some(fill), line, *fill_opacity, None, &circle(*cx, *cy, *r));
            }
            Primitive::CircleBatch { cx, cy, r, fill, fill_opacity, stroke, stroke_width } => {
                let line = stroke.as_ref().map(|colour| (colour, stroke_width.unwrap_or(1.0)));
                for (x, y) in cx.iter().zip(cy) {
                    self.paint(Some(fill), line, *fill_opacity, None, &circle(*x, *y, *r));
                }
            }
            Primitive::Line { x1, y1, x2, y2, stroke, stroke_width, stroke_dasharray } => {
                let shape = format!("{} m {} l", place(*x1, *y1), place(*x2, *y2));
                self.paint(None, Some((stroke, *stroke_width)), None, stroke_dasharray.as_deref(), &shape);
            }
            Primitive::PolyLine { points, stroke, stroke_width, stroke_dasharray } => {
                let mut shape = String::new();
                for (i, (x, y)) in points.iter().enumerate() {
                    let _ = write!(shape, "{} {} ", place(*x, *y), if i == 0 { "m" } else { "l" });
                }
                self.paint(None, Some((stroke, *stroke_width)), None, stroke_dasharray.as_deref(), &shape);
            }
            Primitive::Rect { x, y, width, height, fill, stroke, stroke_width, opacity } => {
                let line = stroke.as_ref().map(|colour| (colour, stroke_width.unwrap_or(1.0)));
                self.paint(Some(fill), line, *opacity, None, &rectangle(*x, *y, *width, *height));
            }
            Primitive::RectBatch { x, y, w, h, fills } => {
                for i in 0..fills.len() {
                    self.paint(Some(&fills[i]), None, None, None, &rectangle(x[i], y[i], w[i], h[i]));
                }
            }
            Primitive::Path(path) => self.path(path)?,
            Primitive::Text { x, y, content, size, anchor, rotate, bold, color } => {
                let colour = color.as_ref().and_then(rgb);
                self.text((*x, *y), content, f64::from(*size), *anchor, rotate.unwrap_or(0.0), *bold, colour);
            }
            Primitive::RichText { x, y, spans, size, anchor, color } => {
                let text: String = spans.iter().map(|span| span.text.as_str()).collect();
                let colour = color.as_ref().and_then(rgb);
                self.text((*x, *y), &text, f64::from(*size), *anchor, 0.0, false, colour);
            }
            Primitive::ClipStart { x, y, width, height, .. } => {
                self.put(format_args!("q {} W n", rectangle(*x, *y, *width, *height)));
            }
            Primitive::GroupStart { transform, .. } => {
                self.out.push_str("q\n");
                match transform.as_deref().map(moved) {
                    None => {}
                    Some(Some((x, y))) => self.put(format_args!("1 0 0 1 {} cm", place(x, y))),
                    Some(None) => return Err(strange("a group that is turned")),
                }
            }
            Primitive::ClipEnd | Primitive::GroupEnd => self.out.push_str("Q\n"),
        }
        Ok(())
    }

    fn path(&mut self, path: &PathData) -> Result<()> {
        let shape = outline(&path.d)?;
        let line = Some((&path.stroke, path.stroke_width));
        self.paint(path.fill.as_ref(), line, path.opacity, path.stroke_dasharray.as_deref(), &shape);
        Ok(())
    }

    fn text(
        &mut self,
        (x, y): (f64, f64),
        text: &str,
        size: f64,
        anchor: TextAnchor,
        degrees: f64,
        bold: bool,
        colour: Option<(u8, u8, u8)>,
    ) {
        let runs = runs(text, bold, self.serif);
        let width: f64 = runs.iter().map(|run| run.width).sum::<f64>() * size;
        let mut along = match anchor {
            TextAnchor::Start => 0.0,
            TextAnchor::Middle => -0.5 * width,
            TextAnchor::End => -width,
        };
        let colour = colour.or(self.scene.text_color.as_deref().and_then(hex)).unwrap_or((0, 0, 0));
        self.out.push_str("q\n");
        self.opacity(None);
        self.colour(colour, "rg");
        let (sin, cos) = degrees.to_radians().sin_cos();
        self.out.push_str("BT\n");
        for run in &runs {
            let up = match run.shift {
                0 => 0.0,
                1 => RAISED * size,
                _ => LOWERED * size,
            };
            let scale = if run.shift == 0 { size } else { SMALL * size };
            let (px, py) = (x + along * cos + up * sin, y + along * sin - up * cos);
            let turned = [cos, sin, sin, -cos].map(number).join(" ");
            let codes: String = run.codes.iter().map(|code| format!("{code:02X}")).collect();
            let font = run.font as usize;
            self.put(format_args!(
                "/F{font} {} Tf {turned} {} Tm <{codes}> Tj",
                number(scale),
                place(px, py)
            ));
            along += run.width * size;
        }
        self.out.push_str("ET\nQ\n");
    }

    fn finish(self) -> Vec<u8> {
        let (plain, bold) =
            if self.serif { ("Times-Roman", "Times-Bold") } else { ("Helvetica", "Helvetica-Bold") };
        let mut packed = ZlibEncoder::new(Vec::new(), Compression::default());
        // Memory takes whatever is written.
        let _ = packed.write_all(self.out.as_bytes());
        let content = packed.finish().unwrap_or_default();
        let states: String = self
            .opacities
            .iter()
            .enumerate()
            .map(|(i, o)| {
                let o = number(f64::from(*o) / 1000.0);
                format!("/G{i} << /ca {o} /CA {o} >> ")
            })
            .collect();
        let size = |pixels: f64| number(pixels * POINT);
        let font = |name: &str, encoding: &str| {
            format!("<< /Type /Font /Subtype /Type1 /BaseFont /{name} {encoding}>>")
        };
        let latin = "/Encoding /WinAnsiEncoding ";
        let objects = [
            "<< /Type /Catalog /Pages 2 0 R >>".to_string(),
            "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_string(),
            format!(
                "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {} {}] /Contents 4 0 R /Resources << /Font << /F0 5 0 R /F1 6 0 R /F2 7 0 R >> \
                 /ExtGState << {states}>> >> >>",
                size(self.scene.width),
                size(self.scene.height)
            ),
            String::new(),
            font(plain, latin),
            font(bold, latin),
            font("Symbol", ""),
            "<< /Producer (Umklapp) >>".to_string(),
        ];
        let mut file = b"%PDF-1.4\n%\xE2\xE3\xCF\xD3\n".to_vec();
        let mut places = Vec::new();
        for (i, object) in objects.iter().enumerate() {
            places.push(file.len());
            file.extend(format!("{} 0 obj\n", i + 1).into_bytes());
            if object.is_empty() {
                let about = format!("<< /Length {} /Filter /FlateDecode >>\nstream\n", content.len());
                file.extend(about.into_bytes());
                file.extend(&content);
                file.extend(b"\nendstream");
            } else {
                file.extend(object.as_bytes());
            }
            file.extend(b"\nendobj\n");
        }
        let (start, count) = (file.len(), objects.len() + 1);
        file.extend(format!("xref\n0 {count}\n0000000000 65535 f \n").into_bytes());
        places.iter().for_each(|at| file.extend(format!("{at:010} 00000 n \n").into_bytes()));
        let trailer =
            format!("trailer\n<< /Size {count} /Root 1 0 R /Info 8 0 R >>\nstartxref\n{start}\n%%EOF\n");
        file.extend(trailer.into_bytes());
        file
    }
}

fn place(x: f64, y: f64) -> String {
    format!("{} {}", number(x), number(y))
}

fn rectangle(x: f64, y: f64, width: f64, height: f64) -> String {
    format!("{} {} re", place(x, y), place(width, height))
}

/// Four Bezier curves, which leave a circle by less than 3e-4 of its radius.
fn circle(x: f64, y: f64, r: f64) -> String {
    let k = 0.552_285 * r;
    let arc = |a: (f64, f64), b: (f64, f64), c: (f64, f64)| {
        format!(" {} {} {} c", place(x + a.0, y + a.1), place(x + b.0, y + b.1), place(x + c.0, y + c.1))
    };
    format!(
        "{} m{}{}{}{} h",
        place(x + r, y),
        arc((r, k), (k, r), (0.0, r)),
        arc((-k, r), (-r, k), (-r, 0.0)),
        arc((-r, -k), (-k, -r), (0.0, -r)),
        arc((k, -r), (r, -k), (r, 0.0))
    )
}

fn strange(what: &str) -> Error {
    Error::internal(format!("the picture has {what}"))
        .hint("save it as `.svg`, which other programs make a PDF of")
}

/// Where `translate(x, y)` leads.
fn moved(transform: &str) -> Option<(f64, f64)> {
    let inner = transform.trim().strip_prefix("translate(")?.strip_suffix(')')?;
    let mut parts = inner.split([',', ' ']).filter(|part| !part.is_empty()).map(str::parse::<f64>);
    let x = parts.next()?.ok()?;
    Some((x, parts.next().map_or(Some(0.0), |y| y.ok())?))
}

/// The outline of a path of SVG, of straight lines and Bezier curves in absolute places.
fn outline(d: &str) -> Result<String> {
    let mut out = String::new();
    let mut numbers: Vec<f64> = Vec::new();
    let mut at = (0.0, 0.0);
    let mut command = ' ';
    let spaced: String = d
        .chars()
        .flat_map(|c| if c.is_ascii_alphabetic() && c != 'e' { vec![' ', c, ' '] } else { vec![c] })
        .collect();
    for word in spaced.split([' ', ',', '\n']).filter(|word| !word.is_empty()) {
        match word.parse::<f64>() {
            Ok(x) => numbers.push(x),
            Err(_) => {
                command = word.chars().next().unwrap_or(' ');
                numbers.clear();
                if matches!(command, 'Z' | 'z') {
                    out.push_str("h ");
                }
                continue;
            }
        }
        let done = match (command, numbers.as_slice()) {
            ('M', &[x, y]) => {
                at = (x, y);
                let _ = write!(out, "{} m ", place(x, y));
                // What follows without a command are lines.
                command = 'L';
                true
            }
            ('L', &[x, y]) => {
                at = (x, y);
                let _ = write!(out, "{} l ", place(x, y));
                true
            }
            ('H', &[x]) => {
                at.0 = x;
                let _ = write!(out, "{} l ", place(at.0, at.1));
                true
            }
            ('V', &[y]) => {
                at.1 = y;
                let _ = write!(out, "{} l ", place(at.0, at.1));
                true
            }
            ('C', &[a, b, c, d, x, y]) => {
                at = (x, y);
                let _ = write!(out, "{} {} {} c ", place(a, b), place(c, d), place(x, y));
                true
            }
            ('M' | 'L' | 'H' | 'V' | 'C', _) => false,
            (other, _) => return Err(strange(&format!("a path with `{other}`"))),
        };
        if done {
            numbers.clear();
        }
    }
    Ok(out)
}

/// The letters of a text by their fonts.
fn runs(text: &str, bold: bool, serif: bool) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for c in text.chars() {
        let (c, shift) = lowered(c);
        let (font, code, width) = letter(c, bold, serif);
        let width = f64::from(width) / 1000.0 * if shift == 0 { 1.0 } else { SMALL };
        match runs.last_mut().filter(|run| run.font == font && run.shift == shift) {
            Some(run) => {
                run.codes.push(code);
                run.width += width;
            }
            None => runs.push(Run { font, codes: vec![code], shift, width }),
        }
    }
    runs
}

/// A letter's font, code and width; a question mark where no font has it.
fn letter(c: char, bold: bool, serif: bool) -> (Font, u8, u16) {
    let (font, widths) = match (bold, serif) {
        (false, false) => (Font::Plain, &HELVETICA),
        (true, false) => (Font::Bold, &HELVETICA_BOLD),
        (false, true) => (Font::Plain, &TIMES),
        (true, true) => (Font::Bold, &TIMES_BOLD),
    };
    let own = |code: u8| {
        let at = if code < 127 { code - 32 } else { code - 160 + 95 };
        (font, code, widths[usize::from(at)])
    };
    if let Some((_, code, width)) = SYMBOL.iter().find(|(known, ..)| *known == c) {
        return (Font::Symbol, *code, *width);
    }
    match c {
        ' '..='~' => own(c as u8),
        '\u{a0}'..='\u{ff}' => own(c as u8),
        '–' => (font, 0x96, if serif { 500 } else { 556 }),
        '—' => (font, 0x97, 1000),
        '…' => (font, 0x85, 1000),
        '‘' | '’' => (font, 0x92, if serif { 333 } else { 222 }),
        _ => own(b'?'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_find_their_fonts() {
        let all = runs("E (10⁻³ eV), µ β₁", false, false);
        let fonts: Vec<(Font, i8, &[u8])> =
            all.iter().map(|r| (r.font, r.shift, r.codes.as_slice())).collect();
        assert_eq!(
            fonts,
            [
                (Font::Plain, 0, b"E (10".as_slice()),
                (Font::Plain, 1, b"-3"),
                (Font::Plain, 0, b" eV), \xb5 "),
                (Font::Symbol, 0, b"b"),
                (Font::Plain, -1, b"1"),
            ]
        );
        // E, space, bracket, two digits: 667 + 278 + 333 + 2 * 556.
        assert!((all[0].width - 2.390).abs() < 1e-12);
        assert_eq!(letter('字', true, true), (Font::Bold, b'?', 500));
    }

    #[test]
    fn paths_of_svg() {
        assert_eq!(outline("M1,2L3 4 5,6Z").unwrap(), "1 2 m 3 4 l 5 6 l h ");
        assert_eq!(outline("M 0 0 H 2 V 1.5 C 1 1 2 2 3 3").unwrap(), "0 0 m 2 0 l 2 1.5 l 1 1 2 2 3 3 c ");
        assert!(outline("M 0 0 A 1 1 0 0 1 2 2").is_err());
        assert_eq!(
            (number(0.5), number(-0.0004), number(1e9)),
            ("0.5".into(), "0".into(), "1000000000".into())
        );
        assert_eq!(moved("translate(3, 4.5)"), Some((3.0, 4.5)));
        assert_eq!(moved("rotate(3)"), None);
    }
}
