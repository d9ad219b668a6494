//! Names of kept files: `20261127T123905.123Z-00c0ffee00c0ffee-adreno_a6xx_….dump.gz`, with the time of the dump, the hash of its contents
//! and, once it is explained, its signature. A folder of such files needs no index beside it.
//!
//! Never: the whole signature where it is longer than a file name should be; the report has it.

use std::fmt;

/// Characters of a signature in a name.
const SIGNATURE: usize = 120;
/// How names of files begin that are not complete.
const TEMPORARY: &str = ".part-";
/// Characters of a node's label in the name of an incomplete file.
const LABEL: usize = 80;
const DAY: u64 = 86_400_000;

/// What the files of one dump have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DumpStem {
    /// When it was read, in milliseconds since 1970.
    pub millis: u64,
    /// The hash of its contents.
    pub hash: u64,
}

/// What a file holds of a dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileRole {
    /// The dump itself.
    Dump,
    /// The report as text.
    Text,
    /// The report as JSON.
    Json,
}

/// The name of a kept file, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptName {
    /// The dump that it belongs to.
    pub stem: DumpStem,
    /// The signature as names have it; `None`: not explained yet.
    pub signature: Option<String>,
    /// What the file holds.
    pub role: FileRole,
}

impl DumpStem {
    /// The name of the dump before it is explained. `packing` is the extension of its compression, such as `.gz`.
    pub fn pending(self, packing: &str) -> String {
        format!("{self}.dump{packing}")
    }

    /// The names of the dump, its report as text, and as JSON, once it is explained.
    pub fn explained(self, signature: &str, packing: &str) -> [String; 3] {
        let signature = file_part(signature, SIGNATURE);
        [format!(".dump{packing}"), ".txt".to_owned(), ".json".to_owned()]
            .map(|end| format!("{self}-{signature}{end}"))
    }
}

impl fmt::Display for DumpStem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = date(self.millis / DAY);
        let of_day = self.millis % DAY;
        let (hour, minute, second) = (of_day / 3_600_000, of_day / 60_000 % 60, of_day / 1000 % 60);
        write!(
            f,
            "{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}.{:03}Z-{:016x}",
            of_day % 1000,
            self.hash
        )
    }
}

impl KeptName {
    /// Reads a name; `None` for files of others.
    pub fn parse(name: &str) -> Option<KeptName> {
        let (date, rest) = name.split_once('T')?;
        let (time, rest) = rest.split_once("Z-")?;
        let (hash, rest) = rest.split_at_checked(16)?;
        let lower_hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
        let hash = u64::from_str_radix(hash, 16).ok().filter(|_| hash.chars().all(lower_hex))?;
        let stem = DumpStem { millis: millis(date, time)?, hash };
        let (signature, role) = [(".txt", FileRole::Text), (".json", FileRole::Json)]
            .into_iter()
            .find_map(|(end, role)| Some((rest.strip_suffix(end)?, role)))
            .or_else(|| {
                let (signature, packing) = rest.rsplit_once(".dump")?;
                matches!(packing, "" | ".gz" | ".zst" | ".xz").then_some((signature, FileRole::Dump))
            })?;
        let signature = match signature {
            "" if role == FileRole::Dump => None,
            "" => return None,
            _ => Some(signature.strip_prefix('-').filter(|signature| !signature.is_empty())?.to_owned()),
        };
        Some(KeptName { stem, signature, role })
    }
}

/// The name of a file that is being written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TempName {
    /// The node that its contents are from, as names have it.
    pub label: String,
    /// The process that writes it, and a number of its own.
    pub writer: (u32, u64),
}

impl TempName {
    /// The name for what is read from a node.
    pub fn new(label: &str, writer: (u32, u64)) -> TempName {
        TempName { label: TempName::label(label), writer }
    }

    /// A label as names have it.
    pub fn label(label: &str) -> String {
        file_part(label, LABEL).replace('-', "_")
    }

    /// Reads a name; `None` for other files.
    pub fn parse(name: &str) -> Option<TempName> {
        let mut parts = name.strip_prefix(TEMPORARY)?.split('-');
        let (label, process, number) = (parts.next()?, parts.next()?, parts.next()?);
        let writer = (process.parse().ok()?, number.parse().ok()?);
        parts.next().is_none().then(|| TempName { label: label.to_owned(), writer })
    }
}

impl fmt::Display for TempName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{TEMPORARY}{}-{}-{}", self.label, self.writer.0, self.writer.1)
    }
}

/// Text as a part of a name: other characters than letters, digits and `.+@_-` become `_`.
fn file_part(text: &str, most: usize) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || ".+@_-".contains(c);
    let part: String = text.chars().take(most).map(|c| if fits(c) { c } else { '_' }).collect();
    if part.is_empty() { "unknown".to_owned() } else { part }
}

/// Year, month and day of a day since 1970, in the Gregorian calendar.
fn date(days: u64) -> (u64, u64, u64) {
    // Years begin in March here, so that the leap day is the last one.
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year + next, month, day)
}

/// The days since 1970 of a date; the inverse of [`date`].
fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year.checked_sub(1)?, month + 9) };
    let of_year = (153 * month + 2) / 5 + day - 1;
    let of_era = year % 400 * 365 + year % 400 / 4 - year % 400 / 100 + of_year;
    (year / 400 * 146_097 + of_era).checked_sub(719_468)
}

/// Milliseconds since 1970 of `20261127` and `123905.123`.
fn millis(date_text: &str, time: &str) -> Option<u64> {
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (time, fraction) = time.split_once('.')?;
    let sizes = [(date_text, 8), (time, 6), (fraction, 3)];
    if !sizes.iter().all(|(text, size)| text.len() == *size && digits(text)) {
        return None;
    }
    let number = |text: &str, from: usize, to: usize| text.get(from..to)?.parse::<u64>().ok();
    let (year, month, day) = (number(date_text, 0, 4)?, number(date_text, 4, 6)?, number(date_text, 6, 8)?);
    let (hour, minute, second) = (number(time, 0, 2)?, number(time, 2, 4)?, number(time, 4, 6)?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let days = days(year, month, day).filter(|&n| date(n) == (year, month, day))?;
    Some(days * DAY + hour * 3_600_000 + minute * 60_000 + second * 1000 + number(fraction, 0, 3)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 27 November 2026, 12:39:05.123.
    const MILLIS: u64 = 1_795_783_145_123;

    #[test]
    fn names_have_time_hash_and_signature_and_are_read_back() {
        let stem = DumpStem { millis: MILLIS, hash: 0xc0_ffee };
        assert_eq!(stem.pending(".gz"), "20261127T123905.123Z-0000000000c0ffee.dump.gz");
        let names = stem.explained("adreno/a6xx/poison(agree)/garbage@IB1", "");
        assert_eq!(
            names[0],
            "20261127T123905.123Z-0000000000c0ffee-adreno_a6xx_poison_agree__garbage@IB1.dump"
        );
        for (name, role) in names.iter().zip([FileRole::Dump, FileRole::Text, FileRole::Json]) {
            let read = KeptName::parse(name).expect("a name");
            assert_eq!((read.stem, read.role, read.signature.is_some()), (stem, role, true), "{name}");
        }
        let pending = KeptName::parse(&stem.pending(".xz")).expect("a name");
        assert_eq!((pending.stem, pending.signature, pending.role), (stem, None, FileRole::Dump));
    }

    #[test]
    fn hostile_signatures_do_not_leave_the_folder() {
        let stem = DumpStem { millis: 0, hash: 0 };
        for signature in ["../../etc/passwd", "", ".", "a\nb\0c", &"x".repeat(4000), "…"] {
            for name in stem.explained(signature, ".gz") {
                assert!(!name.contains(['/', '\0', '\n']) && name.len() < 200, "{name}");
                assert_eq!(KeptName::parse(&name).expect("a name").stem, stem);
            }
        }
    }

    #[test]
    fn other_files_are_not_names() {
        for name in [
            "",
            "T",
            "notes.txt",
            "20261127T123905.123Z-",
            "20261127T123905.123Z-0000000000c0ffee",
            "20261127T123905.123Z-0000000000c0ffee.txt",
            "20261127T123905.123Z-0000000000C0FFEE.dump",
            "20261327T123905.123Z-0000000000c0ffee.dump",
            "20260230T123905.123Z-0000000000c0ffee.dump",
            "20261127T123905.123Z-0000000000c0ffee.dump.bz2",
            "20261127T123905.123Z-0000000000c0ffee-.dump",
            "20261127T123905.123Z-0000000000c0ffeeX.dump",
            "+0261127T123905.123Z-0000000000c0ffee.dump",
        ] {
            assert_eq!(KeptName::parse(name), None, "{name}");
        }
    }

    #[test]
    fn dates_and_days_agree() {
        for n in (0..200_000).step_by(13) {
            let (year, month, day) = date(n);
            assert_eq!(days(year, month, day), Some(n), "{year}-{month}-{day}");
        }
        assert_eq!(date(0), (1970, 1, 1));
        assert_eq!(date(11_016), (2000, 2, 29));
    }

    #[test]
    fn temporary_names_have_the_node() {
        let name = TempName::new("card0-error", (17, 3));
        assert_eq!(name.to_string(), ".part-card0_error-17-3");
        assert_eq!(TempName::parse(".part-card0_error-17-3"), Some(name));
        for other in [".part-a-1", ".part-a-b-1", "part-a-1-1", ".part-a-1-1-1"] {
            assert_eq!(TempName::parse(other), None);
        }
    }
}
