//! Operations on texels, over an image of 4x2 texels in memory.

use super::support::{shader, violations};
use unwedge_shader::interp::{
    BindingPoint, Bindings, Dispatch, ImageCoordinates, Images, Options, Violation, run_compute,
};
use unwedge_shader::ir::ImageAccess;

/// An image of 4x2 texels with one level.
#[derive(Default)]
struct Texels([[u64; 4]; 8]);

impl Texels {
    fn index(at: &ImageCoordinates) -> Option<usize> {
        let [x, y, ..] = at.texel;
        let inside = (0..4).contains(&x) && (0..2).contains(&y) && at.level == 0 && at.sample == 0;
        inside.then_some((y * 4 + x) as usize)
    }
}

impl Images for Texels {
    fn load(&mut self, _: BindingPoint, _: &ImageAccess, at: &ImageCoordinates) -> Option<[u64; 4]> {
        Some(self.0[Texels::index(at)?])
    }

    fn store(
        &mut self,
        _: BindingPoint,
        _: &ImageAccess,
        at: &ImageCoordinates,
        texel: [u64; 4],
    ) -> Option<()> {
        self.0[Texels::index(at)?] = texel;
        Some(())
    }

    fn size(&mut self, _: BindingPoint, _: &ImageAccess, level: u32) -> Option<[u32; 4]> {
        (level == 0).then_some([4, 2, 0, 0])
    }

    fn levels(&mut self, _: BindingPoint) -> Option<u32> {
        Some(1)
    }

    fn samples(&mut self, _: BindingPoint) -> Option<u32> {
        Some(1)
    }
}

/// Texels, and violations, after a body of one invocation; %2 is the image, %3 the texel (1, 1), %4 is 1.
fn run(body: &str) -> (Texels, Vec<Violation>) {
    let text =
        format!("%2: handle = descriptor<r1> %900\n%4: b32 = const<0x1>\n%3: b32x2 = vec %4, %4\n{body}");
    let shader = shader(1, &text);
    let mut bindings = Bindings::default();
    bindings.bind(BindingPoint { set: 0, binding: 0, index: 0 }, vec![0; 16]);
    let mut texels = Texels::default();
    texels.0[5] = [10, 20, 30, 40];
    let dispatch = Dispatch::new([1, 1, 1]);
    let report = run_compute(&shader, dispatch, &mut bindings, &mut texels, &Options::default());
    (texels, violations(&report.expect("it runs to its end").findings))
}

#[test]
fn texels_are_loaded_stored_and_counted() {
    let copy =
        "%10: b32x4 = image_load<2d> %2, %3\n%11: b32x2 = vec %900, %900\nimage_store<2d> %10, %2, %11";
    let (texels, found) = run(copy);
    assert_eq!((texels.0[0], found), ([10, 20, 30, 40], vec![]));
    let atomic = "%10: b32 = image_atomic<add 2d> %4, %2, %3\n%11: b32x4 = vec %10, %10, %10, %10\n\
                  %12: b32x2 = vec %900, %900\nimage_store<2d> %11, %2, %12";
    let (texels, found) = run(atomic);
    assert_eq!((texels.0[0][0], texels.0[5][0], found), (10, 11, vec![]));
    let compare = "%9: b32 = const<0xa>\n%10: b32 = image_atomic_compare<exchange 2d> %4, %9, %2, %3";
    assert_eq!(run(compare).0.0[5][0], 1);
    let queries = "%10: b32x2 = image_size<2d> %2, %900\n%11: b32 = extract<0> %10\n%12: b32 = extract<1> %10\n\
                   %13: b32 = image_levels<2d> %2\n%14: b32 = image_samples<2d> %2\n\
                   %15: b32x4 = vec %11, %12, %13, %14\nimage_store<2d> %15, %2, %3";
    let (texels, found) = run(queries);
    assert_eq!((texels.0[5], found), ([4, 2, 1, 1], vec![]));
}

#[test]
fn texels_past_the_edge_are_reported() {
    let past = "%10: b32 = const<0x4>\n%11: b32x2 = vec %10, %900\n%12: b32x4 = image_load<2d> %2, %11\n\
                image_store<2d> %12, %2, %3";
    let (_, found) = run(past);
    assert_eq!(found, [Violation::ImageOutOfBounds, Violation::PoisonStore]);
}
