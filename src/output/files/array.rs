//! Arrays in NumPy's format, as they stand in files of their own and in archives.

use std::io::{Read, Write};

use npyz::{NpyFile, Order, TypeChar, WriterBuilder};

use crate::error::{Error, Result};
use crate::number::{C64, Matrix, Series, memory};

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

/// One array of any number type, its shape, its elements by rows. `bytes` is how many there are to read: a header that
/// promises more is refused before memory is asked for.
pub(super) fn read_array(mut reader: impl Read, bytes: u64) -> Result<(Vec<u64>, Series)> {
    let npy = NpyFile::new(&mut reader).map_err(|e| Error::file(format!("not a NumPy array: {e}")))?;
    let shape = npy.shape().to_vec();
    let npyz::DType::Plain(kind) = npy.dtype() else {
        return Err(Error::file("an array of records; only arrays of numbers can be read"));
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
        _ => return Err(Error::file(format!("an array of type `{kind}`; only numbers can be read"))),
    };
    if order == Order::Fortran && shape.len() == 2 {
        let (rows, cols) = (shape[0] as usize, shape[1] as usize);
        return Ok((shape, Matrix::new(cols, rows, data)?.transpose().data().clone()));
    }
    Ok((shape, data))
}
