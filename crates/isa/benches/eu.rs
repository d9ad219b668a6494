//! Speed of the EU disassembler in bytes and of the assembler in lines, over valid code that the generator of the tests makes.

use divan::counter::{BytesCount, ItemsCount};
use unwedge_isa::eu::{Instruction, Platform, asm, disasm, program};

fn main() {
    divan::main();
}

/// Instructions as compilers mix them, gen12.
const BODY: &str = "add(8) g40<1>D g38<8,8,1>D g36<8,8,1>D { align1 1Q @1 };
mov(16) g101<1>F g110<1,1,0>D { align1 2H I@2 };
mad(16) g4<1>F g33<8,8,1>F g15.0<0,1,0>F g37<1,1,1>F { align1 1H F@1 };
(+f0.0) sel(8) g64<1>D -g15<8,8,1>D g15<8,8,1>D { align1 1Q @1 $9.dst };
cmp.nz.f0.0(16) g100<1>F g98<8,8,1>F 0x3f800000F /* 1F */ { align1 1H };
math sqrt(16) g14<1>F g53<8,8,1>F null<8,8,1>F { align1 1H @6 $3 };
shl(16) g120<1>D g75<8,8,1>D 0x00000002UD { align1 1H };
send(8) g96UD g104UD nullUD 0x0210b500 0x00000000 ugm MsgDesc: ( load, a32, d32, V4 ) { align1 1Q $13 };
and(16) g30<1>UD g2.2<0,1,0>UD g10<8,8,1>UD { align1 1H };
sync nop(1) null<0,1,0>UB { align1 WE_all 1N @4 };
";

fn code(platform: Platform) -> Vec<u8> {
    program::assemble(platform, &BODY.repeat(1000)).expect("the source is valid")
}

#[divan::bench]
fn disassemble(bencher: divan::Bencher<'_, '_>) {
    let platform = Platform::by_name("dg2").expect("it is in the table");
    let code = code(platform);
    bencher.counter(BytesCount::new(code.len())).bench(|| program::disassemble(platform, &code));
}

#[divan::bench]
fn decode_to_text(bencher: divan::Bencher<'_, '_>) {
    let platform = Platform::by_name("dg2").expect("it is in the table");
    let code = code(platform);
    let mut text = String::new();
    bencher.counter(BytesCount::new(code.len())).bench_local(|| {
        text.clear();
        for bytes in code.as_chunks::<16>().0 {
            disasm::push_alone(&mut text, &Instruction::decode(platform, *bytes), false);
        }
        text.len()
    });
}

#[divan::bench]
fn assemble(bencher: divan::Bencher<'_, '_>) {
    let platform = Platform::by_name("dg2").expect("it is in the table");
    let lines: Vec<&str> = BODY.lines().cycle().take(10_000).collect();
    bencher
        .counter(ItemsCount::new(lines.len()))
        .bench(|| lines.iter().filter(|line| asm::assemble(platform, line).is_ok()).count());
}
