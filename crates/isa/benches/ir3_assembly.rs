//! Speed of the ir3 assembler, in instructions, over a shader like those compilers make.

use divan::counter::ItemsCount;
use unwedge_isa::ir3::asm::Assembler;

fn main() {
    divan::main();
}

/// The instructions of a loop body, as a compiler mixes them.
const BODY: &str = "(sy)(ss)mov.f32f32 r1.x, c8.x
mov.u32u32 r0.w, 0
(rpt5)nop
cmps.f.lt p0.x, r1.x, c16.x
br p0.x, #12
(nop3) add.f r1.w, r2.x, (neg)r3.y
mad.f32 r1.y, (neg)c12.x, r1.x, c12.y
(rpt2)mul.f r4.x, (r)r1.x, (r)c3.x
and.b r0.x, r0.y, 31
sel.b32 r2.y, c38.y, r2.y, c38.z
cov.f32f16 hr0.x, r1.w
sam (f32)(xyzw)r1.x, r0.z, s#6, t#6
(sy)rcp r2.z, r0.w
isam.base0 (f32)(xyzw)r0.z, r0.x, s#0, t#1
stib.b.untyped.1d.u32.1.imm.base0 r2.y, r5.z+3, 4
ldg.f32 r0.w, g[r0.w+308], 1
stg.f32 g[r0.z+305], r8.y, 3
shl.b r2.x, r2.x, 2
add.u hr0.x, hr0.y, h(7)
end
";

const COPIES: usize = 1000;

#[divan::bench]
fn assemble(bencher: divan::Bencher<'_, '_>) {
    let source = BODY.repeat(COPIES);
    let count = source.lines().count();
    let mut assembler = Assembler::new(630);
    bencher.counter(ItemsCount::new(count)).bench_local(|| {
        let (program, errors) = assembler.assemble("bench", &source);
        assert!(errors.is_empty(), "{}", errors[0]);
        program
    });
}

/// The same with other registers in every copy: of lines with operands few come again soon.
#[divan::bench]
fn assemble_varied(bencher: divan::Bencher<'_, '_>) {
    let source = varied();
    let count = source.lines().count();
    let mut assembler = Assembler::new(630);
    bencher.counter(ItemsCount::new(count)).bench_local(|| {
        let (program, errors) = assembler.assemble("bench", &source);
        assert!(errors.is_empty(), "{}", errors[0]);
        program
    });
}

fn varied() -> String {
    const COMPONENTS: [char; 4] = ['x', 'y', 'z', 'w'];
    let mut source = String::new();
    for copy in 0..COPIES {
        for line in BODY.lines() {
            let mut digits = copy;
            let mut rest = line;
            // Every register `rN.c` gets another number and component.
            while let Some(at) = rest.find("r").filter(|_| digits > 0) {
                let (before, register) = rest.split_at(at + 1);
                source.push_str(before);
                rest = register;
                let number = register.bytes().take_while(u8::is_ascii_digit).count();
                let is_register = number > 0 && register[number..].starts_with('.');
                if is_register && !before.ends_with("hr") {
                    source.push_str(&format!("{}.{}", digits % 48, COMPONENTS[digits / 48 % 4]));
                    digits /= 7;
                    rest = &register[number + 2..];
                }
            }
            source.push_str(rest);
            source.push('\n');
        }
    }
    source
}

#[divan::bench]
fn new_assembler() -> Assembler {
    Assembler::new(630)
}
