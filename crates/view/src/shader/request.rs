//! What the options of `unwedge shader` say: descriptors, buffers, push constants, workgroups, specialization constants.

use std::path::PathBuf;
use std::str::FromStr;
use unwedge_shader::interp::BindingPoint;

/// A number: decimal, or hexadecimal after `0x`.
fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Bytes: a number, or a decimal one with K, M or G.
fn size(text: &str) -> Option<u64> {
    let shift = |suffix: char| match suffix {
        'K' => Some(10),
        'M' => Some(20),
        'G' => Some(30),
        _ => None,
    };
    match text.chars().last().and_then(shift) {
        Some(shift) => text[..text.len() - 1].parse::<u64>().ok()?.checked_mul(1 << shift),
        None => number(text),
    }
}

/// `SET.BINDING`, or `SET.BINDING.INDEX` of an array of descriptors.
fn descriptor(text: &str) -> Result<BindingPoint, String> {
    let parts: Option<Vec<u32>> = text.split('.').map(|part| part.parse().ok()).collect();
    match parts.as_deref() {
        Some(&[set, binding]) => Ok(BindingPoint { set, binding, index: 0 }),
        Some(&[set, binding, index]) => Ok(BindingPoint { set, binding, index }),
        _ => Err("expected a descriptor such as 0.1 (set and binding), or 0.1.2 in an array".to_owned()),
    }
}

/// A descriptor as options spell it.
pub(crate) fn descriptor_name(point: BindingPoint) -> String {
    let index = if point.index == 0 { String::new() } else { format!(".{}", point.index) };
    format!("{}.{}{index}", point.set, point.binding)
}

/// Where the bytes of a buffer come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BufferSource {
    /// Zeros, this many bytes.
    Zeros(u64),
    /// The content of a file.
    File(PathBuf),
}

/// `--buffer SET.BINDING=FILE|SIZE`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BufferRequest {
    /// The descriptor.
    pub point: BindingPoint,
    /// What it holds at first.
    pub source: BufferSource,
}

impl FromStr for BufferRequest {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (point, source) =
            text.split_once('=').ok_or("expected SET.BINDING=FILE or SET.BINDING=SIZE such as 0.1=4096")?;
        let source = match size(source) {
            Some(bytes) => BufferSource::Zeros(bytes),
            None if source.is_empty() => return Err("a size or a file belongs after `=`".to_owned()),
            None => BufferSource::File(source.into()),
        };
        Ok(BufferRequest { point: descriptor(point)?, source })
    }
}

/// `--out SET.BINDING=FILE`, or without a file to be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputRequest {
    /// The descriptor.
    pub point: BindingPoint,
    /// The file to write.
    pub file: Option<PathBuf>,
}

impl FromStr for OutputRequest {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (point, file) = text.split_once('=').map_or((text, None), |(point, file)| (point, Some(file)));
        Ok(OutputRequest { point: descriptor(point)?, file: file.map(PathBuf::from) })
    }
}

/// `--push HEX|FILE`
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PushRequest {
    /// The bytes, in the order of memory.
    Bytes(Vec<u8>),
    /// The content of a file.
    File(PathBuf),
}

impl FromStr for PushRequest {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("expected bytes in hexadecimal, or a file".to_owned());
        }
        let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
        let pair = |pair: &[u8]| match pair {
            &[high, low] => Some(digit(high)? << 4 | digit(low)?),
            _ => None,
        };
        let bytes: Option<Vec<u8>> = text.as_bytes().chunks(2).map(pair).collect();
        Ok(bytes.map_or_else(|| PushRequest::File(text.into()), PushRequest::Bytes))
    }
}

/// `--groups X,Y,Z`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Workgroups(pub [u32; 3]);

impl FromStr for Workgroups {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || "expected one to three numbers above 0, such as 4 or 4,2,1".to_owned();
        let mut all = [1; 3];
        for (at, part) in text.split(',').enumerate() {
            let parsed = part.parse().ok().filter(|&count: &u32| count > 0);
            *all.get_mut(at).ok_or_else(expected)? = parsed.ok_or_else(expected)?;
        }
        Ok(Workgroups(all))
    }
}

/// `--spec ID=VALUE`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Specialization {
    /// The number of the constant: its `SpecId`.
    pub id: u32,
    /// Its bits.
    pub bits: u64,
}

impl FromStr for Specialization {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || "expected ID=VALUE, VALUE as an integer or as bits in hexadecimal".to_owned();
        let (id, value) = text.split_once('=').ok_or_else(expected)?;
        let bits = match value {
            "true" => Some(1),
            "false" => Some(0),
            _ => number(value).or_else(|| value.parse::<i64>().ok().map(i64::cast_unsigned)),
        };
        Ok(Specialization { id: id.parse().map_err(|_| expected())?, bits: bits.ok_or_else(expected)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_sizes_or_files() {
        let point = BindingPoint { set: 0, binding: 3, index: 0 };
        for (text, source) in [
            ("0.3=4096", BufferSource::Zeros(4096)),
            ("0.3=0x40", BufferSource::Zeros(64)),
            ("0.3=4K", BufferSource::Zeros(4096)),
            ("0.3=in.bin", BufferSource::File("in.bin".into())),
            ("0.3=./64", BufferSource::File("./64".into())),
            ("0.3=99999999999G", BufferSource::File("99999999999G".into())),
        ] {
            assert_eq!(text.parse(), Ok(BufferRequest { point, source }), "{text}");
        }
        let third = BindingPoint { set: 1, binding: 2, index: 3 };
        assert_eq!("1.2.3=8".parse::<BufferRequest>().map(|buffer| buffer.point), Ok(third));
        for bad in ["", "0.1", "0=4", "0.1=", "a.b=4", "0.1.2.3=4", "0.-1=4"] {
            assert!(bad.parse::<BufferRequest>().is_err(), "{bad}");
        }
    }

    #[test]
    fn push_constants_are_bytes_or_files() {
        assert_eq!("00ff10".parse(), Ok(PushRequest::Bytes(vec![0, 255, 16])));
        for file in ["00f", "push.bin", "+1", "é"] {
            assert_eq!(file.parse(), Ok(PushRequest::File(file.into())), "{file}");
        }
    }

    #[test]
    fn workgroups_and_specialization_constants() {
        assert_eq!("4".parse(), Ok(Workgroups([4, 1, 1])));
        assert_eq!("4,2,3".parse(), Ok(Workgroups([4, 2, 3])));
        for bad in ["", "0", "1,2,3,4", "1,,2", "-1"] {
            assert!(bad.parse::<Workgroups>().is_err(), "{bad}");
        }
        for (text, bits) in [("7=3", 3), ("7=0x3f800000", 0x3f80_0000), ("7=-1", u64::MAX), ("7=true", 1)] {
            assert_eq!(text.parse(), Ok(Specialization { id: 7, bits }), "{text}");
        }
        for bad in ["", "7", "7=", "7=1.5", "x=1"] {
            assert!(bad.parse::<Specialization>().is_err(), "{bad}");
        }
    }
}
