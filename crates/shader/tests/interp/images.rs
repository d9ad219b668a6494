//! Formats of texels, and operations on texels over an image of 4x2 texels.

use super::support::{shader, violations};
use unwedge_shader::interp::{
    BindingPoint, Bindings, Dispatch, ImageCoordinates, ImageMemory, ImageShape, Images, MemoryImages,
    Options, TexelClass, TexelFormat, TexelRead, Violation, run_compute,
};
use unwedge_shader::ir::{Access, Dim, ImageAccess, ImageFlags};

/// The storage image that the shaders of this file use.
const IMAGE: BindingPoint = BindingPoint { set: 0, binding: 1, index: 0 };

fn access(dim: Dim, flags: ImageFlags) -> ImageAccess {
    ImageAccess { dim, flags, access: Access::NONE, component: 0, format: 0 }
}

fn at(texel: [i64; 4]) -> ImageCoordinates {
    ImageCoordinates { texel, level: 0, sample: 0 }
}

/// An image of integers with 4x2 texels, of which (1, 1) and (0, 0) are defined.
fn texels() -> MemoryImages {
    let format = TexelFormat::parse("R32G32B32A32_UINT").expect("a format");
    let shape = ImageShape::new(Dim::D2, [4, 2, 1]);
    let mut images = MemoryImages::default();
    images.images.push(ImageMemory::new(format, shape, 1 << 10).expect("an image"));
    images.views.insert(IMAGE, 0);
    let access = access(Dim::D2, ImageFlags::NONE);
    images.store(IMAGE, &access, &at([1, 1, 0, 0]), [10, 20, 30, 40]).expect("a texel");
    images.store(IMAGE, &access, &at([0; 4]), [0; 4]).expect("a texel");
    images
}

/// Texels, and violations, after a body; %2 is the image, %3 the texel (1, 1), %4 is 1.
fn run(invocations: u32, body: &str) -> (MemoryImages, Vec<Violation>) {
    let text =
        format!("%2: handle = descriptor<r1> %900\n%4: b32 = const<0x1>\n%3: b32x2 = vec %4, %4\n{body}");
    let shader = shader(invocations, &text);
    let mut bindings = Bindings::default();
    bindings.bind(BindingPoint { set: 0, binding: 0, index: 0 }, vec![0; 16]);
    let mut texels = texels();
    let dispatch = Dispatch::new([1, 1, 1]);
    let report = run_compute(&shader, dispatch, &mut bindings, &mut texels, &Options::default());
    (texels, violations(&report.expect("it runs to its end").findings))
}

#[test]
fn texels_are_loaded_stored_and_counted() {
    let copy =
        "%10: b32x4 = image_load<2d> %2, %3\n%11: b32x2 = vec %900, %900\nimage_store<2d> %10, %2, %11";
    let (texels, found) = run(1, copy);
    let texel = |texels: &MemoryImages, at| texels.images[0].texel(at);
    assert_eq!((texel(&texels, [0, 0, 0]), found), (TexelRead::Bits([10, 20, 30, 40]), vec![]));
    let atomic = "%10: b32 = image_atomic<add 2d> %4, %2, %3\n%11: b32x4 = vec %10, %10, %10, %10\n\
                  %12: b32x2 = vec %900, %900\nimage_store<2d> %11, %2, %12";
    let (texels, found) = run(1, atomic);
    assert_eq!((texel(&texels, [0, 0, 0]), found), (TexelRead::Bits([10; 4]), vec![]));
    assert_eq!(texel(&texels, [1, 1, 0]), TexelRead::Bits([11, 0, 0, 0]));
    let compare = "%9: b32 = const<0xa>\n%10: b32 = image_atomic_compare<exchange 2d> %4, %9, %2, %3";
    assert_eq!(texel(&run(1, compare).0, [1, 1, 0]), TexelRead::Bits([1, 0, 0, 0]));
    let queries = "%10: b32x2 = image_size<2d> %2, %900\n%11: b32 = extract<0> %10\n%12: b32 = extract<1> %10\n\
                   %13: b32 = image_levels<2d> %2\n%14: b32 = image_samples<2d> %2\n\
                   %15: b32x4 = vec %11, %12, %13, %14\nimage_store<2d> %15, %2, %3";
    let (texels, found) = run(1, queries);
    assert_eq!((texel(&texels, [1, 1, 0]), found), (TexelRead::Bits([4, 2, 1, 1]), vec![]));
}

#[test]
fn texels_past_the_edge_and_undefined_ones_are_reported() {
    let past = "%10: b32 = const<0x4>\n%11: b32x2 = vec %10, %900\n%12: b32x4 = image_load<2d> %2, %11\n\
                image_store<2d> %12, %2, %3";
    let (_, found) = run(1, past);
    assert_eq!(found, [Violation::ImageOutOfBounds, Violation::PoisonStore]);
    let undefined =
        "%11: b32x2 = vec %4, %900\n%12: b32x4 = image_load<2d> %2, %11\nimage_store<2d> %12, %2, %3";
    let (_, found) = run(1, undefined);
    assert_eq!(found, [Violation::PoisonStore]);
    let wrong = "%10: b32x3 = vec %900, %900, %900\n%12: b32x4 = image_load<3d> %2, %10\n";
    assert_eq!(run(1, wrong).1, [Violation::ImageOutOfBounds], "the image has two dimensions");
}

#[test]
fn races_on_texels_are_reported_unless_atomics_or_a_barrier_of_images_are_between() {
    let store = "%10: b32x4 = vec %4, %4, %4, %4\nimage_store<2d> %10, %2, %3";
    assert_eq!(run(2, store).1, [Violation::TexelRace]);
    let atomic = "%10: b32 = image_atomic<add 2d> %4, %2, %3";
    let (texels, found) = run(2, atomic);
    assert_eq!((texels.images[0].texel([1, 1, 0]), found), (TexelRead::Bits([12, 0, 0, 0]), vec![]));
    let exchange = |kinds: &str| {
        let barrier =
            format!("barrier<execution workgroup memory workgroup order acquire|release kinds {kinds}>");
        format!(
            "%10: b32x2 = vec %1, %900\n%11: b32x4 = vec %1, %1, %1, %1\nimage_store<2d> %11, %2, %10\n{barrier}\n\
             %12: b32 = ixor %1, %4\n%13: b32x2 = vec %12, %900\n%14: b32x4 = image_load<2d> %2, %13"
        )
    };
    assert_eq!(run(2, &exchange("images")).1, []);
    assert_eq!(run(2, &exchange("buffers")).1, [Violation::TexelRace]);
}

/// The bytes of a texel, and what they mean.
fn check(name: &str, bytes: &[u8], texel: [u64; 4]) {
    let format = TexelFormat::parse(name).unwrap_or_else(|| panic!("{name}"));
    assert_eq!(format.bytes(), bytes.len(), "{name}");
    assert_eq!(format.decode(bytes), texel, "{name}");
    let mut out = vec![0xff; bytes.len()];
    format.encode(texel, &mut out);
    assert_eq!(out, bytes, "{name}");
}

#[test]
fn formats_are_read_from_their_names() {
    let f = |value: f32| u64::from(value.to_bits());
    check("R8G8B8A8_UNORM", &[0, 255, 51, 0], [f(0.0), f(1.0), f(0.2), f(0.0)]);
    check("VK_FORMAT_B8G8R8A8_UNORM", &[0, 255, 51, 255], [f(0.2), f(1.0), f(0.0), f(1.0)]);
    check("R8G8_SNORM", &[127, 0x81], [f(1.0), f(-1.0), f(0.0), f(1.0)]);
    check("A2B10G10R10_UINT_PACK32", &[0x01, 0x08, 0x30, 0xc0], [1, 2, 3, 3]);
    check("R5G6B5_UNORM_PACK16", &[0x1f, 0xf8], [f(1.0), f(0.0), f(1.0), f(1.0)]);
    check("B10G11R11_UFLOAT_PACK32", &[0xc0, 0x03, 0x1c, 0x70], [f(1.0), f(0.5), f(0.5), f(1.0)]);
    check("E5B9G9R9_UFLOAT_PACK32", &[0x00, 0x01, 0x01, 0x80], [f(1.0), f(0.5), f(0.0), f(1.0)]);
    check("R16G16_SFLOAT", &[0x00, 0x3c, 0x00, 0xc0], [f(1.0), f(-2.0), f(0.0), f(1.0)]);
    check("R32_SINT", &[0xff; 4], [u64::MAX, 0, 0, 1]);
    check("R64_UINT", &[1, 2, 3, 4, 5, 6, 7, 8], [0x0807_0605_0403_0201, 0, 0, 1]);
    check("X8_D24_UNORM_PACK32", &[0xff, 0xff, 0xff, 0], [f(1.0), f(0.0), f(0.0), f(1.0)]);
    check("R8_SRGB", &[255], [f(1.0), f(0.0), f(0.0), f(1.0)]);
    let snorm = TexelFormat::parse("R8_SNORM").expect("a format");
    assert_eq!(snorm.decode(&[0x80])[0], f(-1.0), "the two least codes are -1");
    let mut bytes = [0; 4];
    let small = TexelFormat::parse("B10G11R11_UFLOAT_PACK32").expect("a format");
    small.encode([f(-3.0), f(1e9), f(f32::INFINITY), 0], &mut bytes);
    assert_eq!(small.decode(&bytes)[..3], [f(0.0), f(65024.0), f(f32::INFINITY)]);
    let many = format!("{}_UNORM", "X64".repeat(2000));
    assert_eq!(TexelFormat::parse(&many), None, "too many components");
    for name in
        ["", "R8", "UNORM", "R9_UNORM", "R8R8_UNORM", "R8_SFLOAT", "BC1_RGB_UNORM_BLOCK", "D24_UNORM_S8_UINT"]
    {
        assert_eq!(TexelFormat::parse(name), None, "{name}");
    }
    assert_eq!(TexelFormat::parse("R8_UINT").map(|format| format.class()), Some(TexelClass::Integer));
}

#[test]
fn every_code_of_small_formats_is_encoded_as_it_was_decoded() {
    let formats = [
        "R8_UNORM",
        "R8_SNORM",
        "R8_USCALED",
        "R8_SSCALED",
        "R8_UINT",
        "R8_SINT",
        "R8_SRGB",
        "R16_UNORM",
        "R16_SNORM",
        "R16_SFLOAT",
        "R4G4B4A4_UNORM_PACK16",
        "A1R5G5B5_UNORM_PACK16",
        "D16_UNORM",
    ];
    for name in formats {
        let format = TexelFormat::parse(name).unwrap_or_else(|| panic!("{name}"));
        let bytes = format.bytes();
        for code in 0..1u32 << (8 * bytes) {
            let code = &code.to_le_bytes()[..bytes];
            let mut out = vec![0; bytes];
            format.encode(format.decode(code), &mut out);
            // The two least codes of SNORM are both -1, and NaNs become quiet.
            let twice = name.ends_with("SNORM") && format.decode(&out) == format.decode(code);
            let is_nan = |texel: [u64; 4]| f32::from_bits(texel[0] as u32).is_nan();
            let nan = name.ends_with("SFLOAT") && is_nan(format.decode(code)) && is_nan(format.decode(&out));
            assert!(out == code || twice || nan, "{name}: {code:x?} becomes {out:x?}");
        }
    }
}

#[test]
fn shapes_without_texels_and_large_ones_are_refused() {
    let format = TexelFormat::parse("R8_UNORM").expect("a format");
    let make = |shape: ImageShape| ImageMemory::new(format, shape, 1 << 16);
    assert!(make(ImageShape::new(Dim::D2, [0, 4, 1])).is_none());
    assert!(make(ImageShape::new(Dim::D2, [u32::MAX; 3])).is_none());
    assert!(make(ImageShape { layers: 5, ..ImageShape::new(Dim::Cube, [4, 4, 1]) }).is_none());
    assert!(make(ImageShape { levels: 99, ..ImageShape::new(Dim::D1, [4, 1, 1]) }).is_none());
    let mut image =
        make(ImageShape { levels: 2, samples: 2, ..ImageShape::new(Dim::D2, [2, 2, 1]) }).expect("one");
    assert_eq!(image.bytes().len(), 10);
    assert!(!image.set_bytes(&[0; 9]) && image.set_bytes(&[0; 10]));
}
