//! Pictures side by side: which pixels differ, and by how much.
//!
//! Never: files, tolerance.

use super::png::{DecodedPicture, Pixels, decode, encode};
use super::{FramePicture, ReplayOptions, ReplayParts, replay_with};
use crate::Style;
use crate::json::Heading;
use crate::plural::counted;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use unwedge_base::Diagnostic;
use unwedge_hw::{Db, DbIdentity};

/// Version of the schema.
const SCHEMA: u32 = 1;
/// Differing pixels that are listed.
const FIRST: usize = 8;

/// Pictures by name, as PNG files.
pub type Pictures = BTreeMap<String, Vec<u8>>;

/// How pictures of the same name differ.
#[derive(Serialize, Debug, Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PictureDiff {
    name: String,
    /// Where it is, if not in both.
    #[serde(skip_serializing_if = "Option::is_none")]
    only_in: Option<&'static str>,
    /// Why they cannot be compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Width and height of both.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sizes: Vec<[u32; 2]>,
    /// Pixels that both have.
    pixels: u64,
    /// Those of them that differ.
    differing: u64,
    /// The largest difference of red, green, blue and alpha.
    largest: [u16; 4],
    /// First and last column and row that differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    bounds: Option<[[u32; 2]; 2]>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    first: Vec<DifferingPixel>,
    /// The picture of the differences, as PNG.
    #[serde(skip)]
    pub picture: Option<Vec<u8>>,
}

#[derive(Serialize, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct DifferingPixel {
    x: u32,
    y: u32,
    a: [u16; 4],
    b: [u16; 4],
}

/// Replays a capture: the pictures of its render passes, and what was lost. They take no more than `max_size` bytes.
pub fn pass_pictures(
    capture: impl Read,
    options: &ReplayOptions,
    db: &Db,
    max_size: u64,
) -> (Pictures, Vec<Diagnostic>) {
    let (mut pictures, mut bytes, mut lost) = (Pictures::new(), 0, Vec::new());
    let mut take = |frame: FramePicture| match frame.png {
        Ok(png) if bytes + png.len() as u64 <= max_size => {
            bytes += png.len() as u64;
            pictures.insert(frame.name, png);
        }
        Ok(_) => lost.push(Diagnostic::loss(None, format!("{}: the pictures are too large", frame.name))),
        Err(why) => lost.push(Diagnostic::loss(None, why)),
    };
    let mut parts = ReplayParts { frames: Some(&mut take), ..ReplayParts::default() };
    let (replayed, mut diagnostics) = replay_with(capture, options, &mut parts, db, max_size);
    diagnostics.append(&mut lost);
    if !replayed.is_complete() {
        diagnostics.push(Diagnostic::loss(None, "a submit was not executed to its end"));
    }
    (pictures, diagnostics)
}

/// The name of the picture of a side that is a PNG file. Pictures of captures have other names.
const ONE_PICTURE: &str = "picture";

/// The pictures of a side that is a PNG file.
pub fn one_picture(png: Vec<u8>) -> Pictures {
    Pictures::from([(ONE_PICTURE.to_owned(), png)])
}

/// Whether a side is a PNG file.
pub fn is_one_picture(pictures: &Pictures) -> bool {
    pictures.contains_key(ONE_PICTURE)
}

/// Compares the pictures of two sides, by name.
pub fn compare_pictures(a: &Pictures, b: &Pictures) -> Vec<PictureDiff> {
    let names: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    names.into_iter().map(|name| compare_named(name, a.get(name), b.get(name))).collect()
}

fn compare_named(name: &str, a: Option<&Vec<u8>>, b: Option<&Vec<u8>>) -> PictureDiff {
    let none = PictureDiff { name: name.to_owned(), ..PictureDiff::default() };
    let (a, b) = match (a, b) {
        (Some(a), Some(b)) => (a, b),
        (Some(_), None) => return PictureDiff { only_in: Some("first"), ..none },
        (None, _) => return PictureDiff { only_in: Some("second"), ..none },
    };
    match (decode(a), decode(b)) {
        (Ok(a), Ok(b)) if a.bits != b.bits => {
            let error = format!("channels have {} and {} bits", a.bits, b.bits);
            PictureDiff { error: Some(error), ..none }
        }
        (Ok(a), Ok(b)) => PictureDiff { name: none.name, ..compare(&a, &b) },
        (Err(error), _) | (_, Err(error)) => PictureDiff { error: Some(error), ..none },
    }
}

fn compare(a: &DecodedPicture, b: &DecodedPicture) -> PictureDiff {
    let (width, height) = (a.width.min(b.width), a.height.min(b.height));
    let pixels = u64::from(width) * u64::from(height);
    let mut diff = PictureDiff {
        sizes: vec![[a.width, a.height], [b.width, b.height]],
        pixels,
        ..PictureDiff::default()
    };
    let mut rows = Vec::new();
    let at = |picture: &DecodedPicture, x: u32, y: u32| {
        let at = y as usize * picture.width as usize + x as usize;
        picture.pixels.get(at).copied().unwrap_or_default()
    };
    for y in 0..height {
        for x in 0..width {
            let (a_pixel, b_pixel) = (at(a, x, y), at(b, x, y));
            let apart: [u16; 4] = std::array::from_fn(|n| a_pixel[n].abs_diff(b_pixel[n]));
            rows.extend(shown(apart, a.bits));
            if apart == [0; 4] {
                continue;
            }
            diff.differing += 1;
            diff.largest.iter_mut().zip(apart).for_each(|(most, apart)| *most = (*most).max(apart));
            let [first, last] = diff.bounds.get_or_insert([[x, y]; 2]);
            *first = [first[0].min(x), first[1].min(y)];
            *last = [last[0].max(x), last[1].max(y)];
            if diff.first.len() < FIRST {
                diff.first.push(DifferingPixel { x, y, a: a_pixel, b: b_pixel });
            }
        }
    }
    diff.picture = encode(width, height, Pixels::Rgba8, &rows).ok().filter(|_| pixels > 0);
    diff
}

/// A difference as a pixel that can be seen: red, green and blue, or grey where alpha alone differs.
fn shown(apart: [u16; 4], bits: u8) -> [u8; 4] {
    let [r, g, b, a] = apart.map(|apart| match apart {
        0 => 0,
        apart if bits == 16 => (apart >> 8).max(1) as u8,
        apart => apart as u8,
    });
    if [r, g, b] == [0; 3] { [a, a, a, 255] } else { [r, g, b, 255] }
}

impl PictureDiff {
    /// What the pictures are called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether something differs, or cannot be compared.
    pub fn differs(&self) -> bool {
        let same_size = self.sizes.windows(2).all(|sizes| sizes[0] == sizes[1]);
        self.differing > 0 || self.only_in.is_some() || self.error.is_some() || !same_size
    }
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct DiffJson<'a> {
    #[serde(flatten)]
    heading: Heading<'a>,
    files: [&'a str; 2],
    pictures: &'a [PictureDiff],
}

/// As one JSON object. `files` are what the two sides are called.
///
/// # Errors
///
/// Those of `out`, if it cannot be written to.
pub fn picture_json(
    diffs: &[PictureDiff],
    files: [&str; 2],
    database: &DbIdentity,
    out: &mut dyn Write,
) -> io::Result<()> {
    let heading = Heading::of_object("unwedge.diff_images", SCHEMA, database);
    serde_json::to_writer(&mut *out, &DiffJson { heading, files, pictures: diffs })?;
    writeln!(out)
}

/// As text. `sides` are what the two are called.
///
/// # Errors
///
/// Those of `out`, if it cannot be written to.
pub fn picture_text(
    diffs: &[PictureDiff],
    sides: [&str; 2],
    style: Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    for diff in diffs {
        writeln!(out, "  {}", style.bold(&diff.name))?;
        if let Some(side) = diff.only_in {
            let side = if side == "first" { sides[0] } else { sides[1] };
            writeln!(out, "    only in {side}")?;
            continue;
        }
        if let Some(error) = &diff.error {
            writeln!(out, "    cannot be compared: {error}")?;
            continue;
        }
        if let [[w, h], [other_w, other_h]] = diff.sizes[..]
            && (w, h) != (other_w, other_h)
        {
            writeln!(out, "    sizes differ: {w}x{h}, {other_w}x{other_h}")?;
        }
        let [r, g, b, a] = diff.largest;
        writeln!(out, "    {} of {} differ", diff.differing, counted(diff.pixels, "pixel", "pixels"))?;
        let Some([[x1, y1], [x2, y2]]) = diff.bounds else { continue };
        writeln!(out, "    largest difference: red {r}, green {g}, blue {b}, alpha {a}")?;
        writeln!(out, "    from {x1},{y1} to {x2},{y2}")?;
        for DifferingPixel { x, y, a, b } in &diff.first {
            writeln!(out, "    {x},{y}: {a:?} {b:?}")?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(pixels: &[[u8; 4]]) -> Vec<u8> {
        encode(2, pixels.len() as u32 / 2, Pixels::Rgba8, pixels.as_flattened()).unwrap()
    }

    #[test]
    fn differences_are_counted() {
        let a = picture(&[[1, 2, 3, 4], [0; 4], [9; 4], [7; 4]]);
        let b = picture(&[[1, 2, 3, 4], [5, 0, 0, 0], [9; 4], [7, 7, 7, 0]]);
        let both = |name: &str, bytes: &[u8]| Pictures::from([(name.to_owned(), bytes.to_vec())]);
        let diffs = compare_pictures(&both("x", &a), &both("x", &b));
        let [diff] = &diffs[..] else { panic!("{diffs:?}") };
        assert!(diff.differs());
        assert_eq!((diff.pixels, diff.differing, diff.largest), (4, 2, [5, 0, 0, 7]));
        assert_eq!(diff.bounds, Some([[1, 0], [1, 1]]));
        let shown = decode(diff.picture.as_deref().unwrap()).unwrap();
        assert_eq!(shown.pixels, [[0, 0, 0, 255], [5, 0, 0, 255], [0, 0, 0, 255], [7, 7, 7, 255]]);
        assert!(!compare_pictures(&both("x", &a), &both("x", &a))[0].differs());
        let apart = compare_pictures(&both("x", &a), &both("y", &a));
        assert_eq!(
            apart.iter().map(|diff| diff.only_in).collect::<Vec<_>>(),
            [Some("first"), Some("second")]
        );
        let cut = compare_pictures(&both("x", &a), &both("x", &b[..20]));
        assert!(cut[0].error.is_some() && cut[0].differs());
    }
}
