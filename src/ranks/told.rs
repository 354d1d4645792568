//! What rank 0 tells the others: results of work that it did for all, as bytes.

use crate::error::{Error, ErrorKind, Result};

/// A value that one rank can tell another.
pub trait Broadcast: Sized {
    fn bytes(&self) -> Vec<u8>;
    /// The value of such bytes; none where they are of something else.
    fn of(bytes: &[u8]) -> Option<Self>;
}

impl Broadcast for () {
    fn bytes(&self) -> Vec<u8> {
        Vec::new()
    }

    fn of(bytes: &[u8]) -> Option<Self> {
        bytes.is_empty().then_some(())
    }
}

impl Broadcast for Box<[u8]> {
    fn bytes(&self) -> Vec<u8> {
        self.to_vec()
    }

    fn of(bytes: &[u8]) -> Option<Self> {
        Some(bytes.into())
    }
}

impl Broadcast for bool {
    fn bytes(&self) -> Vec<u8> {
        vec![u8::from(*self)]
    }

    fn of(bytes: &[u8]) -> Option<Self> {
        bytes.first().map(|b| *b != 0)
    }
}

impl Broadcast for f64 {
    fn bytes(&self) -> Vec<u8> {
        self.to_le_bytes().to_vec()
    }

    fn of(bytes: &[u8]) -> Option<Self> {
        Some(f64::from_le_bytes(bytes.try_into().ok()?))
    }
}

impl Broadcast for u64 {
    fn bytes(&self) -> Vec<u8> {
        self.to_le_bytes().to_vec()
    }

    fn of(bytes: &[u8]) -> Option<Self> {
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    }
}

impl Broadcast for String {
    fn bytes(&self) -> Vec<u8> {
        self.as_bytes().to_vec()
    }

    fn of(bytes: &[u8]) -> Option<Self> {
        String::from_utf8(bytes.to_vec()).ok()
    }
}

/// Numbers one after the other.
macro_rules! numbers {
    ($($type:ty: $count:expr, $to:expr, $from:expr;)*) => { $(
        impl Broadcast for $type {
            fn bytes(&self) -> Vec<u8> {
                let to: fn(&$type) -> [f64; $count] = $to;
                to(self).iter().flat_map(|x| x.to_le_bytes()).collect()
            }

            fn of(bytes: &[u8]) -> Option<Self> {
                if bytes.len() != 8 * $count {
                    return None;
                }
                let mut x = [0.0; $count];
                for (x, b) in x.iter_mut().zip(bytes.chunks_exact(8)) {
                    *x = f64::of(b)?;
                }
                let from: fn([f64; $count]) -> $type = $from;
                Some(from(x))
            }
        }
    )* };
}

numbers! {
    [f64; 2]: 2, |x| *x, |x| x;
    [f64; 3]: 3, |x| *x, |x| x;
}

impl Broadcast for u32 {
    fn bytes(&self) -> Vec<u8> {
        self.to_le_bytes().to_vec()
    }

    fn of(bytes: &[u8]) -> Option<Self> {
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    }
}

impl Broadcast for (u64, f64) {
    fn bytes(&self) -> Vec<u8> {
        [self.0.to_le_bytes(), self.1.to_le_bytes()].concat()
    }

    fn of(bytes: &[u8]) -> Option<Self> {
        let (a, b) = bytes.split_at_checked(8)?;
        Some((u64::of(a)?, f64::of(b)?))
    }
}

/// Each with its length before it.
impl<T: Broadcast> Broadcast for Vec<T> {
    fn bytes(&self) -> Vec<u8> {
        let mut all = Vec::new();
        for value in self {
            let bytes = value.bytes();
            all.extend((bytes.len() as u64).to_le_bytes());
            all.extend(bytes);
        }
        all
    }

    fn of(mut bytes: &[u8]) -> Option<Self> {
        let mut all = Vec::new();
        while !bytes.is_empty() {
            let (length, rest) = bytes.split_at_checked(8)?;
            let (value, rest) = rest.split_at_checked(usize::try_from(u64::of(length)?).ok()?)?;
            all.push(T::of(value)?);
            bytes = rest;
        }
        Some(all)
    }
}

impl<T: Broadcast> Broadcast for [Vec<T>; 2] {
    fn bytes(&self) -> Vec<u8> {
        let [a, b] = self.each_ref().map(Broadcast::bytes);
        [(a.len() as u64).to_le_bytes().to_vec(), a, b].concat()
    }

    fn of(bytes: &[u8]) -> Option<Self> {
        let (length, rest) = bytes.split_at_checked(8)?;
        let (a, b) = rest.split_at_checked(usize::try_from(u64::of(length)?).ok()?)?;
        Some([Vec::of(a)?, Vec::of(b)?])
    }
}

impl<T: Broadcast> Broadcast for Option<T> {
    fn bytes(&self) -> Vec<u8> {
        self.as_ref().map_or_else(Vec::new, |value| [vec![1], value.bytes()].concat())
    }

    fn of(bytes: &[u8]) -> Option<Self> {
        match bytes.split_first() {
            None => Some(None),
            Some((_, rest)) => T::of(rest).map(Some),
        }
    }
}

const KINDS: [ErrorKind; 8] = [
    ErrorKind::Input,
    ErrorKind::Memory,
    ErrorKind::File,
    ErrorKind::Numeric,
    ErrorKind::Backend,
    ErrorKind::Parted,
    ErrorKind::Interrupted,
    ErrorKind::Internal,
];

/// Between a message and its hint: a character of no text.
const BETWEEN: char = '\0';

/// A result, as bytes.
pub(super) fn written<T: Broadcast>(result: &Result<T>) -> Vec<u8> {
    match result {
        Ok(value) => [vec![KINDS.len() as u8], value.bytes()].concat(),
        Err(e) => {
            let kind = KINDS.iter().position(|kind| *kind == e.kind()).unwrap_or(0) as u8;
            let hint = e.hint_text().map(|hint| format!("{BETWEEN}{hint}")).unwrap_or_default();
            [vec![kind], format!("{}{hint}", e.message()).into_bytes()].concat()
        }
    }
}

/// The result of these bytes.
pub(super) fn read<T: Broadcast>(bytes: &[u8]) -> Result<T> {
    let strange = || Error::internal("rank 0 told something that the others do not understand");
    let (kind, rest) = bytes.split_first().ok_or_else(strange)?;
    let Some(kind) = KINDS.get(usize::from(*kind)) else { return T::of(rest).ok_or_else(strange) };
    let text = String::from_utf8_lossy(rest);
    let (message, hint) = text.split_once(BETWEEN).map_or((&*text, None), |(m, h)| (m, Some(h)));
    let error = Error::new(*kind, message);
    Err(match hint {
        Some(hint) => error.hint(hint),
        None => error,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_across() {
        let there = |x: f64| read::<f64>(&written(&Ok(x))).unwrap();
        assert_eq!(there(-1.5).to_bits(), (-1.5f64).to_bits());
        assert_eq!(read::<Option<String>>(&written(&Ok(Some("é".to_string())))).unwrap(), Some("é".into()));
        assert_eq!(read::<Option<String>>(&written(&Ok(None::<String>))).unwrap(), None);
        assert_eq!(read::<Option<String>>(&written(&Ok(Some(String::new())))).unwrap(), Some(String::new()));
        for kind in KINDS {
            let e = Error::new(kind, "a message").hint("a hint");
            let back = read::<()>(&written(&Err::<(), _>(e))).unwrap_err();
            assert_eq!((back.kind(), back.message(), back.hint_text()), (kind, "a message", Some("a hint")));
        }
        let plain = read::<bool>(&written(&Err::<bool, _>(Error::file("none")))).unwrap_err();
        assert_eq!((plain.message(), plain.hint_text()), ("none", None));
        let lists = [vec![vec![[0.5, f64::INFINITY, -0.0]], vec![]], vec![]];
        assert_eq!(read::<[Vec<Vec<[f64; 3]>>; 2]>(&written(&Ok(lists.clone()))).unwrap(), lists);
        assert_eq!(read::<Vec<u32>>(&written(&Ok(vec![7u32, 0]))).unwrap(), [7, 0]);
        assert!(read::<bool>(&[]).is_err() && read::<f64>(&[7, 1]).is_err());
    }
}
