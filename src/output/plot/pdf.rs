//! A drawn scene as a PDF page: lines and shapes as they are, texts as texts in the fonts that every reader has, so
//! that other programs can change them.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use kuva::render::color::Color;
use kuva::render::render::{PathData, Primitive, Scene, TextAnchor};
use pdf_writer::types::{LineCapStyle, LineJoinStyle};
use pdf_writer::writers::ExtGraphicsState;
use pdf_writer::{Content, Filter, Finish as _, Name, Pdf, Rect, Ref, Str, TextStr};

use super::label::{above, below, pieces};
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
struct Letters {
    font: Font,
    codes: Vec<u8>,
    /// How far they stand above the line, and how large they are, in parts of a plain letter's size.
    up: f64,
    scale: f64,
    /// How far they lead.
    width: f64,
    /// Whether a bar goes through the upper part.
    barred: bool,
}

/// Their names on the page.
const FONTS: [&[u8]; 3] = [b"F0", b"F1", b"F2"];

struct PdfPage<'a> {
    content: Content,
    /// Opacities that were used, in thousandths.
    opacities: Vec<u16>,
    serif: bool,
    scene: &'a Scene,
}

/// A part of an outline, in absolute places.
#[derive(Debug, Clone, Copy, PartialEq)]
enum PathSegment {
    Move(f64, f64),
    Line(f64, f64),
    Curve([f64; 6]),
    Rectangle([f64; 4]),
    Close,
}

/// The scene as a document of one page; `serif` writes in Times, else in Helvetica.
///
/// # Errors
/// Shapes that this program's plots do not have.
pub(super) fn document(scene: &Scene, serif: bool) -> Result<Vec<u8>> {
    let mut page = PdfPage { content: Content::new(), opacities: Vec::new(), serif, scene };
    // Scenes count downwards from the upper left corner, in pixels.
    let upside_down = [POINT, 0.0, 0.0, -POINT, 0.0, scene.height * POINT];
    page.content.transform(upside_down.map(number));
    page.content.set_line_join(LineJoinStyle::RoundJoin).set_line_cap(LineCapStyle::RoundCap);
    if let Some(colour) = scene.background_color.as_deref().and_then(hex) {
        page.fill_colour(colour);
        page.content.rect(0.0, 0.0, number(scene.width), number(scene.height)).fill_nonzero();
    }
    for element in &scene.elements {
        page.draw(element)?;
    }
    Ok(page.finish())
}

/// A length as a page takes it: thousandths of a pixel are enough, and short to write.
fn number(x: f64) -> f32 {
    ((x * 1000.0).round() / 1000.0) as f32 + 0.0
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

impl PdfPage<'_> {
    fn fill_colour(&mut self, colour: (u8, u8, u8)) {
        let [r, g, b] = parts(colour);
        self.content.set_fill_rgb(r, g, b);
    }

    fn opacity(&mut self, opacity: Option<f64>) {
        let thousandths = (opacity.unwrap_or(1.0).clamp(0.0, 1.0) * 1000.0).round() as u16;
        let at = self.opacities.iter().position(|known| *known == thousandths).unwrap_or_else(|| {
            self.opacities.push(thousandths);
            self.opacities.len() - 1
        });
        self.content.set_parameters(Name(format!("G{at}").as_bytes()));
    }

    /// Sets colours and paints an outline.
    fn paint(
        &mut self,
        fill: Option<&Color>,
        stroke: Option<(&Color, f64)>,
        opacity: Option<f64>,
        dashes: Option<&str>,
        outline: &[PathSegment],
    ) {
        let fill = fill.and_then(rgb);
        let stroke = stroke.and_then(|(colour, width)| Some((rgb(colour)?, width)));
        if fill.is_none() && stroke.is_none() {
            return;
        }
        self.content.save_state();
        self.opacity(opacity);
        if let Some(colour) = fill {
            self.fill_colour(colour);
        }
        if let Some((colour, width)) = stroke {
            let [r, g, b] = parts(colour);
            self.content.set_stroke_rgb(r, g, b).set_line_width(number(width));
        }
        if let Some(dashes) = dashes {
            let lengths = dashes.split([' ', ',']).filter_map(|x| x.parse::<f64>().ok().map(number));
            self.content.set_dash_pattern(lengths, 0.0).set_line_cap(LineCapStyle::ButtCap);
        }
        self.follow(outline);
        match (fill.is_some(), stroke.is_some()) {
            (true, true) => self.content.fill_nonzero_and_stroke(),
            (true, false) => self.content.fill_nonzero(),
            _ => self.content.stroke(),
        };
        self.content.restore_state();
    }

    fn follow(&mut self, outline: &[PathSegment]) {
        for step in outline {
            match step {
                PathSegment::Move(x, y) => self.content.move_to(number(*x), number(*y)),
                PathSegment::Line(x, y) => self.content.line_to(number(*x), number(*y)),
                PathSegment::Curve(places) => {
                    let [a, b, c, d, x, y] = places.map(number);
                    self.content.cubic_to(a, b, c, d, x, y)
                }
                PathSegment::Rectangle(sides) => {
                    let [x, y, width, height] = sides.map(number);
                    self.content.rect(x, y, width, height)
                }
                PathSegment::Close => self.content.close_path(),
            };
        }
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
                let line = [PathSegment::Move(*x1, *y1), PathSegment::Line(*x2, *y2)];
                self.paint(None, Some((stroke, *stroke_width)), None, stroke_dasharray.as_deref(), &line);
            }
            Primitive::PolyLine { points, stroke, stroke_width, stroke_dasharray } => {
                let step = |(i, (x, y)): (usize, &(f64, f64))| match i {
                    0 => PathSegment::Move(*x, *y),
                    _ => PathSegment::Line(*x, *y),
                };
                let line: Vec<PathSegment> = points.iter().enumerate().map(step).collect();
                self.paint(None, Some((stroke, *stroke_width)), None, stroke_dasharray.as_deref(), &line);
            }
            Primitive::Rect { x, y, width, height, fill, stroke, stroke_width, opacity } => {
                let line = stroke.as_ref().map(|colour| (colour, stroke_width.unwrap_or(1.0)));
                self.paint(
                    Some(fill),
                    line,
                    *opacity,
                    None,
                    &[PathSegment::Rectangle([*x, *y, *width, *height])],
                );
            }
            Primitive::RectBatch { x, y, w, h, fills } => {
                for i in 0..fills.len() {
                    self.paint(
                        Some(&fills[i]),
                        None,
                        None,
                        None,
                        &[PathSegment::Rectangle([x[i], y[i], w[i], h[i]])],
                    );
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
                self.content.save_state();
                self.follow(&[PathSegment::Rectangle([*x, *y, *width, *height])]);
                self.content.clip_nonzero().end_path();
            }
            Primitive::GroupStart { transform, .. } => {
                self.content.save_state();
                match transform.as_deref().map(moved) {
                    None => {}
                    Some(Some((x, y))) => {
                        self.content.transform([1.0, 0.0, 0.0, 1.0, number(x), number(y)]);
                    }
                    Some(None) => return Err(strange("a group that is turned")),
                }
            }
            Primitive::ClipEnd | Primitive::GroupEnd => {
                self.content.restore_state();
            }
        }
        Ok(())
    }

    fn path(&mut self, path: &PathData) -> Result<()> {
        let line = Some((&path.stroke, path.stroke_width));
        let outline = outline(&path.d)?;
        self.paint(path.fill.as_ref(), line, path.opacity, path.stroke_dasharray.as_deref(), &outline);
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
        self.content.save_state();
        self.opacity(None);
        self.fill_colour(colour);
        let (sin, cos) = degrees.to_radians().sin_cos();
        self.content.begin_text();
        let mut bars = Vec::new();
        for run in &runs {
            let (up, scale) = (run.up * size, run.scale * size);
            let place = |along: f64, up: f64| (x + along * cos + up * sin, y + along * sin - up * cos);
            let (px, py) = place(along, up);
            self.content.set_font(Name(FONTS[run.font as usize]), number(scale));
            self.content.set_text_matrix([cos, sin, sin, -cos, px, py].map(number));
            self.content.show(Str(&run.codes));
            if run.barred {
                let (left, right) = (along - 0.03 * scale, along + 0.62 * run.width * size);
                bars.push((place(left, up + 0.58 * scale), place(right, up + 0.58 * scale), 0.06 * scale));
            }
            along += run.width * size;
        }
        self.content.end_text();
        let [r, g, b] = parts(colour);
        for ((x1, y1), (x2, y2), width) in bars {
            self.content.set_stroke_rgb(r, g, b).set_line_width(number(width));
            self.content.set_line_cap(LineCapStyle::ButtCap);
            self.content.move_to(number(x1), number(y1)).line_to(number(x2), number(y2)).stroke();
        }
        self.content.restore_state();
    }

    fn finish(self) -> Vec<u8> {
        let [catalog, pages, page, content, about] = [1, 2, 3, 4, 5].map(Ref::new);
        let fonts = [6, 7, 8].map(Ref::new);
        let (plain, bold): (&[u8], &[u8]) =
            if self.serif { (b"Times-Roman", b"Times-Bold") } else { (b"Helvetica", b"Helvetica-Bold") };
        let mut pdf = Pdf::new();
        pdf.set_version(1, 4);
        pdf.catalog(catalog).pages(pages);
        pdf.pages(pages).kids([page]).count(1);
        let mut own = pdf.page(page);
        let (width, height) = (self.scene.width * POINT, self.scene.height * POINT);
        own.parent(pages).media_box(Rect::new(0.0, 0.0, number(width), number(height))).contents(content);
        let mut resources = own.resources();
        resources.fonts().pairs(FONTS.into_iter().map(Name).zip(fonts));
        let mut states = resources.ext_g_states();
        for (i, opacity) in self.opacities.iter().enumerate() {
            let opacity = number(f64::from(*opacity) / 1000.0);
            let mut state = states.insert(Name(format!("G{i}").as_bytes())).start::<ExtGraphicsState>();
            state.stroking_alpha(opacity).non_stroking_alpha(opacity);
        }
        states.finish();
        resources.finish();
        own.finish();
        for (font, name) in fonts.into_iter().zip([plain, bold]) {
            pdf.type1_font(font).base_font(Name(name)).encoding_predefined(Name(b"WinAnsiEncoding"));
        }
        pdf.type1_font(fonts[2]).base_font(Name(b"Symbol"));
        let mut packed = ZlibEncoder::new(Vec::new(), Compression::default());
        // Memory takes whatever is written.
        let _ = packed.write_all(&self.content.finish());
        let packed = packed.finish().unwrap_or_default();
        pdf.stream(content, &packed).filter(Filter::FlateDecode);
        pdf.document_info(about).producer(TextStr("Umklapp"));
        pdf.finish()
    }
}

/// Red, green and blue as parts of one.
fn parts((r, g, b): (u8, u8, u8)) -> [f32; 3] {
    [r, g, b].map(|x| number(f64::from(x) / 255.0))
}

/// Four Bezier curves, which leave a circle by less than 3e-4 of its radius.
fn circle(x: f64, y: f64, r: f64) -> [PathSegment; 6] {
    let k = 0.552_285 * r;
    let arc = |a: (f64, f64), b: (f64, f64), c: (f64, f64)| {
        PathSegment::Curve([x + a.0, y + a.1, x + b.0, y + b.1, x + c.0, y + c.1])
    };
    [
        PathSegment::Move(x + r, y),
        arc((r, k), (k, r), (0.0, r)),
        arc((-k, r), (-r, k), (-r, 0.0)),
        arc((-r, -k), (-k, -r), (0.0, -r)),
        arc((k, -r), (r, -k), (r, 0.0)),
        PathSegment::Close,
    ]
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
fn outline(d: &str) -> Result<Vec<PathSegment>> {
    let mut out = Vec::new();
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
                    out.push(PathSegment::Close);
                }
                continue;
            }
        }
        let step = match (command, numbers.as_slice()) {
            ('M', &[x, y]) => {
                // What follows without a command are lines.
                command = 'L';
                PathSegment::Move(x, y)
            }
            ('L', &[x, y]) => PathSegment::Line(x, y),
            ('H', &[x]) => PathSegment::Line(x, at.1),
            ('V', &[y]) => PathSegment::Line(at.0, y),
            ('C', &[a, b, c, d, x, y]) => PathSegment::Curve([a, b, c, d, x, y]),
            ('M' | 'L' | 'H' | 'V' | 'C', _) => continue,
            (other, _) => return Err(strange(&format!("a path with `{other}`"))),
        };
        if let PathSegment::Move(x, y) | PathSegment::Line(x, y) | PathSegment::Curve([.., x, y]) = step {
            at = (x, y);
        }
        out.push(step);
        numbers.clear();
    }
    Ok(out)
}

/// The letters of a text by their fonts.
fn runs(text: &str, bold: bool, serif: bool) -> Vec<Letters> {
    let mut runs: Vec<Letters> = Vec::new();
    for piece in pieces(text) {
        for c in piece.text.chars() {
            let (c, shift) = lowered(c);
            let (up, scale) = match shift {
                0 => (piece.up, piece.scale),
                1 => above(piece.up, piece.scale),
                _ => below(piece.up, piece.scale),
            };
            // No font has these letters: one is like them, and one has a bar through it.
            let barred = c == 'ħ';
            let c = match c {
                'ħ' => 'h',
                'ℓ' => 'l',
                c => c,
            };
            let (font, code, width) = letter(c, bold, serif);
            let width = f64::from(width) / 1000.0 * scale;
            let same = |run: &&mut Letters| {
                run.font == font && run.up == up && run.scale == scale && !run.barred && !barred
            };
            match runs.last_mut().filter(same) {
                Some(run) => {
                    run.codes.push(code);
                    run.width += width;
                }
                None => runs.push(Letters { font, codes: vec![code], up, scale, width, barred }),
            }
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
        '†' => (font, 0x86, if serif { 500 } else { 556 }),
        '‘' | '’' => (font, 0x92, if serif { 333 } else { 222 }),
        _ => own(b'?'),
    }
}

#[cfg(test)]
mod tests {
    use super::super::label::{marked, signs};
    use super::*;

    #[test]
    fn letters_find_their_fonts() {
        let all = runs("E (10⁻³ eV), µ β₁", false, false);
        let shift = |r: &Letters| if r.up == 0.0 { 0 } else { r.up.signum() as i8 };
        let fonts: Vec<(Font, i8, &[u8])> =
            all.iter().map(|r| (r.font, shift(r), r.codes.as_slice())).collect();
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
        // A group in a group, and a letter that is made of two.
        let all = runs(&marked(r"\hbar^{h_{1}}"), false, false);
        let codes: Vec<&[u8]> = all.iter().map(|r| r.codes.as_slice()).collect();
        assert_eq!(codes, [b"h".as_slice(), b"h", b"1"]);
        assert!(all[0].barred && !all[1].barred);
        let (up, scale) = above(0.0, 1.0);
        assert_eq!((all[2].up, all[2].scale), below(up, scale));
        // Every sign that labels know has a letter on the page.
        for sign in signs() {
            let found = runs(&sign.to_string(), false, true);
            assert!(found[0].codes != [b'?'], "{sign}");
        }
    }

    #[test]
    fn paths_of_svg() {
        use PathSegment::{Close, Curve, Line, Move};
        let lines = [Move(1.0, 2.0), Line(3.0, 4.0), Line(5.0, 6.0), Close];
        assert_eq!(outline("M1,2L3 4 5,6Z").unwrap(), lines);
        let bent = [Move(0.0, 0.0), Line(2.0, 0.0), Line(2.0, 1.5), Curve([1.0, 1.0, 2.0, 2.0, 3.0, 3.0])];
        assert_eq!(outline("M 0 0 H 2 V 1.5 C 1 1 2 2 3 3").unwrap(), bent);
        assert!(outline("M 0 0 A 1 1 0 0 1 2 2").is_err());
        assert_eq!((number(0.5), number(1e9)), (0.5, 1e9));
        assert!(number(-0.0004).is_sign_positive());
        assert_eq!(moved("translate(3, 4.5)"), Some((3.0, 4.5)));
        assert_eq!(moved("rotate(3)"), None);
    }
}
