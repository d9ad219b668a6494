//! What goes to a file, as options spell it: `SPEC=FILE`.
//!
//! Never: opens the file.

use super::{ImageWanted, MemoryWanted};
use crate::asm::number;
use std::path::PathBuf;
use std::str::FromStr;

/// An image that goes to a file.
#[derive(Clone, Debug)]
pub struct ImageFile {
    /// Which.
    pub wanted: ImageWanted,
    /// Where it goes.
    pub file: PathBuf,
}

impl FromStr for ImageFile {
    type Err = String;

    /// Reads `SPEC=FILE`. The `=` of an option of SPEC is followed by a number.
    fn from_str(text: &str) -> Result<ImageFile, String> {
        let (spec, file) = text
            .match_indices('=')
            .map(|(at, _)| (&text[..at], &text[at + 1..]))
            .find(|(spec, _)| spec.parse::<ImageWanted>().is_ok())
            .filter(|(_, file)| !file.is_empty())
            .map_or_else(|| Err(text.rsplit_once('=').map_or(text, |(spec, _)| spec)), Ok)
            .map_err(|spec| {
                spec.parse::<ImageWanted>().err().unwrap_or("name a file: SPEC=FILE".to_owned())
            })?;
        Ok(ImageFile { wanted: spec.parse()?, file: PathBuf::from(file) })
    }
}

/// Memory that goes to a file.
#[derive(Clone, Debug)]
pub struct MemoryDump {
    /// Which.
    pub wanted: MemoryWanted,
    /// Where it goes.
    pub file: PathBuf,
}

impl FromStr for MemoryDump {
    type Err = String;

    /// Reads `[SET@]ADDRESS:SIZE=FILE`.
    fn from_str(text: &str) -> Result<MemoryDump, String> {
        const FORM: &str = "write it as [SET@]ADDRESS:SIZE=FILE: 0x100027000:1024=out.bin";
        let (place, file) = text.split_once('=').ok_or(FORM)?;
        let (set, place) = match place.split_once('@') {
            Some((set, place)) => {
                let set = set.parse().map_err(|_| format!("`{set}` is not the number of a set; {FORM}"))?;
                (Some(set), place)
            }
            None => (None, place),
        };
        let (address, size) = place.split_once(':').ok_or(FORM)?;
        let number = |text: &str| number(text).ok_or_else(|| format!("`{text}` is not a number; {FORM}"));
        let wanted = MemoryWanted { set, iova: number(address)?, size: number(size)? };
        Ok(MemoryDump { wanted, file: PathBuf::from(file) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn an_image_is_read_with_its_file() {
        let image = |text: &str| text.parse::<ImageFile>();
        let read = image("0x1000:R8_UNORM:4x4:tile=3:ubwc=a=b:c.png").unwrap();
        assert!(matches!(read.wanted, ImageWanted::Memory(memory) if memory.params.ubwc));
        assert_eq!(read.file, Path::new("a=b:c.png"));
        assert_eq!(image("0:R8_UNORM:4x4=out.png").unwrap().file, Path::new("out.png"));
        assert_eq!(image("draw=3:mrt0:layer=1=out.png").unwrap().file, Path::new("out.png"));
        for wrong in
            ["0:R8_UNORM:4x4", "0:R8_UNORM:4x4=", "0:R8:4x4=out.png", "0:R8_UNORM:4x4:tile=3", "draw=3"]
        {
            assert!(image(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_place_in_memory_is_read_with_and_without_a_set() {
        let dump = |text: &str| text.parse::<MemoryDump>();
        let read = dump("3@0x100027000:1024=a=b.bin").unwrap();
        assert_eq!(read.wanted, MemoryWanted { set: Some(3), iova: 0x1_0002_7000, size: 1024 });
        assert_eq!(read.file, PathBuf::from("a=b.bin"));
        assert_eq!(dump("16:0x10=x").unwrap().wanted, MemoryWanted { set: None, iova: 16, size: 16 });
        for wrong in ["0x10:4", "0x10=f", "x@0x10:4=f", "0xg:4=f"] {
            assert!(dump(wrong).is_err(), "{wrong}");
        }
    }
}
