//! Arrays in NumPy's format, as they stand in files of their own and in archives.

use std::io::{Read, Write};

use npyz::{NpyFile, Order, TypeChar, WriterBuilder};

use crate::error::{Error, Result};
use crate::number::{C64, Column, Matrix, Series, memory};

/// One array in the format of `.npy`.
pub(super) fn array<T: npyz::AutoSerialize>(
    out: impl Write,
    shape: &[u64],
    numbers: impl Iterator<Item = T>,
) -> std::io::Result<()> {
    let mut writer = npyz::WriteOptions::<T>::new().default_dtype().shape(shape).writer(out).begin_nd()?;
    writer.extend(numbers)?;
    writer.finish()
}

/// The most characters of a text, one at least.
pub(super) fn width(texts: &[String]) -> usize {
    texts.iter().map(|text| text.chars().count()).max().unwrap_or(0).max(1)
}

/// Whether texts of one width are much longer than they are.
pub(super) fn mostly_zeros(texts: &[String]) -> bool {
    let letters: usize = texts.iter().map(String::len).sum();
    width(texts) * texts.len() > (1 << 16) + 4 * letters
}

/// Texts as NumPy keeps them: of one width, in four bytes a character.
pub(super) fn texts(mut out: impl Write, shape: &[u64], texts: &[String]) -> std::io::Result<()> {
    let wide = width(texts);
    let sizes: String = shape.iter().map(|n| format!("{n},")).collect();
    let about = format!("{{'descr': '<U{wide}', 'fortran_order': False, 'shape': ({sizes}), }}");
    // The numbers begin at a multiple of 64 bytes; ten of them stand before this text, and a new line ends it.
    let padded = (about.len() + 11).div_ceil(64) * 64 - 11;
    out.write_all(b"\x93NUMPY\x01\x00")?;
    out.write_all(&((padded + 1) as u16).to_le_bytes())?;
    out.write_all(format!("{about:<padded$}\n").as_bytes())?;
    let mut row = Vec::with_capacity(4 * wide);
    for text in texts {
        row.clear();
        row.extend(text.chars().flat_map(|letter| u32::from(letter).to_le_bytes()));
        row.resize(4 * wide, 0);
        out.write_all(&row)?;
    }
    Ok(())
}

/// One array of numbers or texts: its shape, its elements by rows. For `bytes` see [`read_array`].
pub(super) fn read_column(mut reader: impl Read, bytes: u64) -> Result<(Vec<u64>, Column)> {
    // The header alone is read twice.
    let mut head = Vec::new();
    reader.by_ref().take(10).read_to_end(&mut head).map_err(|e| Error::of_io(&e))?;
    let length = head.get(8..10).map_or(0, |b| u64::from(u16::from_le_bytes([b[0], b[1]])));
    reader.by_ref().take(length).read_to_end(&mut head).map_err(|e| Error::of_io(&e))?;
    // Reading a header takes longer than reading a short array: those of numbers are read once.
    let texts = head.windows(2).any(|two| matches!(two, [b'<' | b'>' | b'|' | b'=' | b'\'' | b'"', b'U']));
    let header = texts.then(|| npyz::NpyHeader::from_reader(head.as_slice()).ok()).flatten();
    let kind = header.and_then(|header| match header.dtype() {
        npyz::DType::Plain(kind) if kind.type_char() == TypeChar::UnicodeStr => {
            Some((header.shape().to_vec(), kind))
        }
        _ => None,
    });
    let Some((shape, kind)) = kind else {
        return read_array(head.as_slice().chain(reader), bytes).map(|(shape, data)| (shape, data.into()));
    };
    let wide = kind.size_field();
    let count = shape.iter().try_fold(1u64, |a, &b| a.checked_mul(b));
    let size = count.and_then(|n| n.checked_mul(wide)?.checked_mul(4));
    let Some(size) = size.filter(|&size| size <= bytes && wide > 0) else {
        return Err(Error::file("the file is shorter than its header says"));
    };
    // Texts may be much shorter than their width, so one is read at a time.
    memory::ensure(u128::from(4 * wide), "a text")?;
    let mut row = vec![0; 4 * wide as usize];
    let big = kind.endianness() == npyz::Endianness::Big;
    let letter = |b: &[u8]| {
        let b = [b[0], b[1], b[2], b[3]];
        let code = if big { u32::from_be_bytes(b) } else { u32::from_le_bytes(b) };
        char::from_u32(code).ok_or_else(|| Error::file("an array of texts with a letter that is none"))
    };
    let mut texts = Vec::new();
    for _ in 0..size / (4 * wide) {
        reader.read_exact(&mut row).map_err(|_| Error::file("the file is shorter than its header says"))?;
        let end = row.iter().rposition(|&b| b != 0).map_or(0, |last| last / 4 + 1);
        let text: String = row[..4 * end].chunks_exact(4).map(letter).collect::<Result<_>>()?;
        memory::ensure(text.len() as u128, "the texts")?;
        texts.push(text);
    }
    Ok((shape, texts.into()))
}

/// One array of any number type, its shape, its elements by rows. `bytes` is how many there are to read: a header that
/// promises more is refused before memory is asked for.
pub(super) fn read_array(mut reader: impl Read, bytes: u64) -> Result<(Vec<u64>, Series)> {
    let npy = NpyFile::new(&mut reader).map_err(|e| Error::file(format!("not a NumPy array: {e}")))?;
    let shape = npy.shape().to_vec();
    let npyz::DType::Plain(kind) = npy.dtype() else {
        return Err(Error::file("an array of records; only arrays of numbers can be read")
            .hint("in NumPy, `x[\"name\"]` is an array of one field"));
    };
    let count = shape.iter().try_fold(1u64, |a, &b| a.checked_mul(b));
    if count.and_then(|n| n.checked_mul(kind.size_field())).is_none_or(|needed| needed > bytes) {
        return Err(Error::file("the file is shorter than its header says"));
    }
    let (order, size) = (npy.order(), kind.size_field());
    // As they are read and as they are kept.
    let kept = if kind.type_char() == TypeChar::Complex { 16 } else { 8 };
    let copies = if size == kept && order == Order::C { 1 } else { 2 };
    memory::ensure(u128::from(copies * kept * count.unwrap_or(0)), "the array")?;
    if order == Order::Fortran && shape.len() > 2 {
        return Err(Error::file(format!("an array of {} dimensions in Fortran's order", shape.len()))
            .hint("save `numpy.ascontiguousarray` of it"));
    }
    fn all<T: npyz::Deserialize, R: Read>(npy: NpyFile<R>) -> Result<Vec<T>> {
        npy.into_vec().map_err(|e| Error::of_io(&e))
    }
    macro_rules! reals {
        ($t:ty) => {
            Series::Real(all::<$t, _>(npy)?.into_iter().map(|x| x as f64).collect())
        };
    }
    let data = match (kind.type_char(), size) {
        (TypeChar::Float, 8) => Series::Real(all::<f64, _>(npy)?),
        (TypeChar::Float, 4) => reals!(f32),
        (TypeChar::Int, 8) => reals!(i64),
        (TypeChar::Int, 4) => reals!(i32),
        (TypeChar::Int, 2) => reals!(i16),
        (TypeChar::Int, 1) => reals!(i8),
        (TypeChar::Uint, 8) => reals!(u64),
        (TypeChar::Uint, 4) => reals!(u32),
        (TypeChar::Uint, 2) => reals!(u16),
        (TypeChar::Uint, 1) => reals!(u8),
        (TypeChar::Bool, 1) => {
            Series::Real(all::<bool, _>(npy)?.into_iter().map(|x| f64::from(u8::from(x))).collect())
        }
        (TypeChar::Complex, 16) => Series::Complex(all::<C64, _>(npy)?),
        (TypeChar::Complex, 8) => Series::Complex(
            all::<num_complex::Complex<f32>, _>(npy)?
                .iter()
                .map(|z| C64::new(z.re.into(), z.im.into()))
                .collect(),
        ),
        _ => {
            return Err(Error::file(format!("an array of type `{kind}`; only numbers can be read"))
                .hint("in NumPy, `x.astype(float)` or `x.astype(complex)` makes numbers of many types; texts stand in \
                     `.npz`"));
        }
    };
    if order == Order::Fortran && shape.len() == 2 {
        let (rows, cols) = (shape[0] as usize, shape[1] as usize);
        return Ok((shape, Matrix::new(cols, rows, data)?.transpose().data().clone()));
    }
    Ok((shape, data))
}
