//! Statistics of shaders: those in the reference logs of the data folder, and small ones made here.

mod data;

use unwedge_isa::ir3::asm::Assembler;
use unwedge_isa::ir3::{Stats, WaveLimits};

/// The word of a listing line, `:6:0002:0004[deadbeefx_deadbeefx] text`.
fn word(line: &str) -> Option<u64> {
    let (words, _) = line.strip_prefix(':')?.split_once('[')?.1.split_once("x] ")?;
    let (high, low) = words.split_once("x_")?;
    Some(u64::from_str_radix(high, 16).ok()? << 32 | u64::from_str_radix(low, 16).ok()?)
}

/// The shaders of a log with the statistics under them. Lines of branch targets repeat the word that follows.
fn shaders(log: &str) -> Vec<(Vec<u64>, String)> {
    let mut shaders = Vec::new();
    let mut words = Vec::new();
    let mut lines = log.lines().map(|line| line.trim_start_matches('\t'));
    while let Some(line) = lines.next() {
        if let Some(word) = word(line) {
            if !line.ends_with(':') {
                words.push(word);
            }
        } else if line == "Stats:" {
            let text: Vec<_> = lines.by_ref().take(4).collect();
            shaders.push((std::mem::take(&mut words), text.join("\n")));
        } else {
            words.clear();
        }
    }
    shaders
}

#[test]
fn shaders_have_the_statistics_of_the_logs() {
    for (file, log) in data::logs() {
        let shaders = shaders(&log);
        let problem = |gpu_id: u32| {
            shaders.iter().find_map(|(words, expected)| {
                let mut out = Vec::new();
                Stats::of(words.iter().copied(), gpu_id).write(gpu_id, 0, &mut out);
                let text = String::from_utf8(out).unwrap();
                let got = text.trim_start_matches("Stats:\n").trim_end();
                (got != expected)
                    .then(|| format!("a{gpu_id}: {words:016x?}\n  want {expected}\n  have {got}"))
            })
        };
        let problems: Vec<_> = [300, 400, 500, 600, 700].map(problem).into_iter().collect();
        println!("{file}: {} shaders with statistics", shaders.len());
        assert!(
            problems.iter().any(Option::is_none),
            "{file}:\n{}",
            problems.into_iter().flatten().collect::<Vec<_>>().join("\n")
        );
    }
}

fn stats(gpu_id: u32, source: &str) -> Stats {
    let (program, errors) = Assembler::new(gpu_id).assemble("test", source);
    assert!(errors.is_empty(), "{errors:?}");
    Stats::of(program.words, gpu_id)
}

#[test]
fn repeats_and_delays_are_cycles() {
    let stats =
        stats(630, "(rpt2)nop\n(nop3) add.f r0.x, r0.y, r0.z\n(rpt1)mul.f r1.x, (r)r2.x, c5.y\nend\n");
    assert_eq!((stats.words, stats.extra_cycles, stats.nops), (4, 6, 6));
    assert_eq!(stats.categories, [7, 0, 3, 0, 0, 0, 0, 0]);
    // The repeat reaches r2.y and not beyond: sources without (r) stay.
    assert_eq!((stats.highest_full, stats.highest_const), (Some(9), Some(21)));
    assert_eq!((stats.full_registers(630), stats.constants()), (3, 6));
}

#[test]
fn waiting_for_a_special_function_costs_what_is_left_of_it() {
    let stats = stats(630, "rcp r0.x, r0.x\nnop\n(rpt1)nop\n(ss)add.f r0.x, r0.x, r0.x\n(sy)end\n");
    assert_eq!((stats.ss_stall, stats.ss, stats.sy), (7, 1, 1));
}

#[test]
fn shared_registers_and_special_ones_have_no_footprint() {
    let stats = stats(630, "mov.u32u32 r48.x, r0.x\nmova a0.x, hr0.y\ncmps.s.eq p0.x, r0.x, 1\n");
    assert_eq!((stats.highest_full, stats.highest_half), (Some(0), Some(1)));
    assert_eq!((stats.movs, stats.covs), (2, 0));
}

#[test]
fn waves_are_limited_by_registers() {
    let limits = WaveLimits { registers: 96, granularity: 2, most: 16 };
    let waves = |source, double| stats(630, source).max_waves(630, limits, double);
    assert_eq!(waves("end", false), 16);
    assert_eq!(waves("mov.u32u32 r11.w, 0", false), 16);
    assert_eq!(waves("mov.u32u32 r23.x, 0", false), 8);
    assert_eq!(waves("mov.u32u32 r23.x, 0", true), 4);
    // Half registers lie two to a full one from a6xx on.
    assert_eq!(waves("mov.u16u16 hr47.w, 0", false), 8);
}

#[test]
fn any_words_have_statistics() {
    let mut word = 0x0123_4567_89ab_cdefu64;
    for _ in 0..20_000 {
        word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        for gpu_id in [0, 330, 420, 530, 630, 730] {
            Stats::of([word, word.rotate_left(32)], gpu_id);
        }
    }
}
