//! What follows register allocation, held to recorded cases of ACO's phases and to its statistics.

mod rig;

use rig::cases::{Case, CaseBlock, cases, machine, text_line};
use rig::recorded::columns;
use std::collections::BTreeMap;
use unwedge_aco::assemble::assemble;
use unwedge_aco::cost::estimate;
use unwedge_aco::machine::MachineProgram;
use unwedge_aco::{Code, clauses, dual, hazards, scalar_copies, waits};
use unwedge_check::amdgcn::{Certainty, CheckOptions, Rule, check_words};
use unwedge_isa::amdgcn::model::{Class, Role};
use unwedge_isa::amdgcn::{Gpu, Operand, Reg, codec, text};
use unwedge_testkit::data;
use unwedge_testkit::parallel;

fn words(hex: &str) -> Vec<u32> {
    let word = |chunk: &[u8]| u32::from_str_radix(std::str::from_utf8(chunk).ok()?, 16).ok();
    hex.as_bytes().chunks_exact(8).map(|chunk| word(chunk).expect("hexadecimal")).collect()
}

/// Code without branches as one block; `None` if it has some.
fn straight(words: Vec<u32>, gpu: &Gpu) -> Option<Code> {
    let mut at = 0;
    while at < words.len() {
        let sized = codec::decode(&words[at..], gpu)?;
        at += usize::from(sized.dwords);
        if sized.inst.row().role == Role::End {
            break;
        }
        let branches = sized
            .inst
            .written()
            .any(|(slot, operand)| slot.class == Class::Label && matches!(operand, Operand::Imm(_)));
        // Code of several blocks, between which there is no branch, sets `exec`.
        let mut sets_exec = false;
        sized.inst.touches(gpu, &mut |touch| {
            sets_exec |= touch.access.writes() && matches!(touch.reg, Reg::EXEC | Reg::EXEC_HI);
        });
        if branches || sets_exec {
            return None;
        }
    }
    let words = words[..at].to_vec();
    Some(Code { words, starts: vec![0], ..Code::default() })
}

#[test]
fn latency_of_straight_code_is_what_aco_estimates() {
    let (Some(rows), Some(binaries)) =
        (data::text("amd/shaders/baseline.csv.gz"), data::text("amd/shaders/aco_binaries.csv.gz"))
    else {
        eprintln!("no recorded code under {}", data::root().display());
        return;
    };
    let latency: BTreeMap<(String, String), u64> = columns(&rows, ["family", "backend", "shader", "latency"])
        .into_iter()
        .filter(|[_, backend, ..]| backend == "aco")
        .map(|[family, _, shader, latency]| ((family, shader), latency.parse().expect("a number")))
        .collect();
    let jobs: Vec<_> = columns(&binaries, ["family", "shader", "wave", "code_dwords_hex"])
        .into_iter()
        .enumerate()
        .filter(|(number, _)| std::env::var_os("UNWEDGE_ALL").is_some() || number % 8 == 0)
        .map(|(_, job)| job)
        .collect();
    let compared = parallel::map(&jobs, |[family, shader, wave, hex]| {
        let gpu = Gpu::new(family).expect("a chip").with_wave64(wave == "64");
        let own = estimate(&straight(words(hex), &gpu)?, &gpu, None).latency;
        let recorded = *latency.get(&(family.clone(), shader.clone()))?;
        Some((family.clone(), shader.clone(), wave.clone(), own, recorded))
    });
    let mut by_chip: BTreeMap<_, (usize, usize)> = BTreeMap::new();
    for (family, shader, wave, own, recorded) in compared.into_iter().flatten() {
        let (all, same) = by_chip.entry((family.clone(), wave.clone())).or_default();
        *all += 1;
        *same += usize::from(own == recorded);
        if own != recorded {
            println!("{family} {shader} wave{wave}: {own}, not {recorded}");
        }
    }
    for ((family, wave), (all, same)) in &by_chip {
        println!("{family:10} wave{wave} {same:>5} of {all}");
    }
    let (all, same) = by_chip.values().fold((0, 0), |sum, own| (sum.0 + own.0, sum.1 + own.1));
    assert!(all > 0 && same * 100 >= all * 97, "{same} of {all} latencies are those of ACO");
}

/// Instructions of a program that the project prints as text.
fn text(program: &MachineProgram) -> Vec<String> {
    let mut lines = Vec::new();
    for block in &program.blocks {
        for inst in &block.insts {
            let mut line = String::new();
            text::write(&inst.inst, &program.gpu, &mut line);
            lines.push(line);
        }
    }
    lines
}

/// What was done with the cases of a pass.
#[derive(Default)]
struct Tally {
    cases: usize,
    /// Not compared, by reason.
    left: BTreeMap<String, usize>,
    good: usize,
    /// The first cases that are not as wanted.
    bad: Vec<String>,
}

impl Tally {
    fn judge(&mut self, id: &str, verdict: Result<(), String>) {
        self.cases += 1;
        match verdict {
            Ok(()) => self.good += 1,
            Err(what) => self.bad.push(format!("{id}: {what}")),
        }
    }

    fn leave(&mut self, why: &str) {
        let reason = why.split(':').next().unwrap_or_default().split(' ').next().unwrap_or_default();
        *self.left.entry(reason.to_owned()).or_default() += 1;
    }

    /// Fails if fewer cases than a share are good.
    fn finish(&self, pass: &str, share: f64) {
        println!("{pass}: {} of {} good, left out: {:?}", self.good, self.cases, self.left);
        for bad in
            self.bad.iter().take(if std::env::var_os("UNWEDGE_ALL").is_some() { usize::MAX } else { 12 })
        {
            println!("  {bad}");
        }
        let left: usize = self.left.values().sum();
        assert!(left * 20 <= self.cases, "{pass}: {left} cases are not read");
        assert!(
            self.good as f64 >= share * self.cases as f64,
            "{pass}: {} of {} good",
            self.good,
            self.cases
        );
    }
}

/// Cases of a pass with their programs.
fn programs(pass: &str, tally: &mut Tally) -> Vec<(Case, MachineProgram, MachineProgram)> {
    let mut found = Vec::new();
    for case in cases(pass) {
        match (machine(&case.gpu, &case.input), machine(&case.gpu, &case.output)) {
            (Ok((input, _)), Ok((output, _))) => found.push((case, input, output)),
            (Err(why), _) | (_, Err(why)) => tally.leave(&why),
        }
    }
    found
}

#[test]
fn clauses_are_those_of_the_cases() {
    let mut tally = Tally::default();
    for (case, mut program, wanted) in programs("form_hard_clauses", &mut tally) {
        clauses::form(&mut program);
        let (own, wanted) = (text(&program), text(&wanted));
        let differs = own.iter().zip(&wanted).find(|(own, wanted)| own != wanted);
        tally.judge(
            &case.id,
            match differs {
                _ if own == wanted => Ok(()),
                Some((own, wanted)) => Err(format!("{own}, not {wanted}")),
                None => Err("another length".to_owned()),
            },
        );
    }
    tally.finish("form_hard_clauses", 1.0);
}

/// How many waits, NOPs and instructions like them there are, beyond those of another program.
fn inserted(program: &MachineProgram, before: usize) -> usize {
    program.blocks.iter().map(|block| block.insts.len()).sum::<usize>() - before
}

/// What the checker finds of some rules; registers that nothing wrote do not count, as cases begin in the middle of a program.
fn check(program: &mut MachineProgram, about: impl Fn(Rule) -> bool) -> Result<(), String> {
    let gpu = program.gpu;
    let words = assemble(program).map_err(|error| error.to_string())?.words;
    let options = CheckOptions { continues: true, ..CheckOptions::default() };
    let report = check_words(&words, &gpu, &options);
    let wrong =
        report.findings.iter().find(|finding| finding.level == Certainty::Error && about(finding.rule));
    match wrong {
        Some(finding) => {
            let listing = text(program).join("; ");
            Err(format!("{:?} at {}: {listing}", finding.rule, finding.at))
        }
        None => Ok(()),
    }
}

fn count(program: &MachineProgram) -> usize {
    program.blocks.iter().map(|block| block.insts.len()).sum()
}

/// Waits as a hazard rule is not one of them.
fn is_wait(rule: Rule) -> bool {
    matches!(rule, Rule::Wait | Rule::FlatWait | Rule::HalfWait)
}

#[test]
fn waits_are_enough_and_not_more_than_in_the_cases() {
    let mut tally = Tally::default();
    for (case, mut program, wanted) in programs("insert_waitcnt", &mut tally) {
        let before = count(&program);
        waits::insert(&mut program);
        let (own, wanted) = (inserted(&program, before), inserted(&wanted, before));
        let listing = text(&program).join("; ");
        let verdict = check(&mut program, is_wait).and_then(|()| {
            if own <= wanted { Ok(()) } else { Err(format!("{own} waits, not {wanted}: {listing}")) }
        });
        tally.judge(&case.id, verdict);
    }
    tally.finish("insert_waitcnt", 0.97);
}

#[test]
fn hazards_are_cured_with_no_more_than_in_the_cases() {
    let mut tally = Tally::default();
    for (case, mut program, wanted) in programs("insert_nops", &mut tally) {
        let before = count(&program);
        hazards::insert(&mut program);
        let (own, wanted) = (inserted(&program, before), inserted(&wanted, before));
        let listing = text(&program).join("; ");
        let about = |rule: Rule| !is_wait(rule) && rule > Rule::SpareNop && rule != Rule::OpenEnd;
        let verdict = check(&mut program, about).and_then(|()| {
            if own <= wanted { Ok(()) } else { Err(format!("{own} cures, not {wanted}: {listing}")) }
        });
        tally.judge(&case.id, verdict);
    }
    tally.finish("insert_nops", 0.97);
}

#[test]
fn pairs_are_not_fewer_than_in_the_cases() {
    let mut tally = Tally::default();
    for case in cases("schedule_vopd") {
        // Some blocks have words of instructions without their literals.
        for (input, output) in case.input.iter().zip(&case.output) {
            let alone = |block| machine(&case.gpu, std::slice::from_ref(block));
            let (Ok((mut own, _)), Ok((wanted, _))) = (alone(input), alone(output)) else { continue };
            dual::pair(&mut own);
            let fewer = count(&own) > count(&wanted);
            tally.judge(&case.id, if fewer { Err(text(&own).join("; ")) } else { Ok(()) });
        }
    }
    tally.finish("schedule_vopd", 0.9);
}

/// The instructions left after scalar copies are forwarded in a program of blocks, which are given by their predecessors and text.
fn forwarded(blocks: &[(&[usize], &[&str])]) -> Vec<String> {
    let gpu = Gpu::new("gfx1030").expect("a chip").with_wave64(true);
    let block = |(preds, lines): &(&[usize], &[&str])| CaseBlock {
        kinds: Vec::new(),
        loop_depth: 0,
        linear_preds: preds.to_vec(),
        logical_preds: preds.to_vec(),
        code: lines.iter().flat_map(|line| text_line(line, &gpu)).collect(),
    };
    let blocks: Vec<CaseBlock> = blocks.iter().map(block).collect();
    let (mut program, _) = machine(&gpu, &blocks).unwrap_or_else(|error| panic!("{error}"));
    scalar_copies::forward(&mut program);
    text(&program)
}

#[test]
fn copies_of_scalars_are_read_where_their_source_holds_the_value_on_all_paths() {
    const BRANCH: &str = "s_cbranch_scc0 B2";
    // In another block.
    let split = forwarded(&[
        (&[], &["s_mov_b32 s1, s4", BRANCH]),
        (&[0], &["v_mov_b32_e32 v1, s1"]),
        (&[0, 1], &["v_mbcnt_lo_u32_b32 v0, s1, 0", "s_endpgm"]),
    ]);
    assert_eq!(split[1..], ["v_mov_b32_e32 v1, s4", "v_mbcnt_lo_u32_b32 v0, s4, 0", "s_endpgm"]);
    // A register that has the value already.
    let again = forwarded(&[
        (&[], &["s_mov_b32 m0, s4", "s_sendmsg sendmsg(MSG_GS, GS_OP_EMIT, 0)", BRANCH]),
        (&[0], &["s_mov_b32 m0, s4", "s_sendmsg sendmsg(MSG_GS, GS_OP_CUT, 0)"]),
        (&[0, 1], &["s_mov_b32 m0, s4", "s_sendmsg sendmsg(MSG_GS, GS_OP_EMIT, 0)", "s_endpgm"]),
    ]);
    assert_eq!(again.iter().filter(|line| line.contains("m0")).count(), 1, "{again:?}");
    // The source or the copy is overwritten on one path, the copy is made on one path only, or it is read as a half of a pair.
    let kept: [&[(&[usize], &[&str])]; 4] = [
        &[
            (&[], &["s_mov_b32 s1, s4", BRANCH]),
            (&[0], &["s_mov_b32 s4, 0"]),
            (&[0, 1], &["v_mov_b32_e32 v0, s1", "s_endpgm"]),
        ],
        &[(&[], &[BRANCH]), (&[0], &["s_mov_b32 s1, s4"]), (&[0, 1], &["v_mov_b32_e32 v0, s1", "s_endpgm"])],
        &[(&[], &["s_mov_b32 s0, s4", "s_mov_b32 s1, s5", "s_load_dword s2, s[0:1], 0x0", "s_endpgm"])],
        &[
            (&[], &["s_mov_b32 m0, s4", BRANCH]),
            (&[0], &["s_movk_i32 m0, 0x100"]),
            (&[0, 1], &["s_mov_b32 m0, s4", "s_sendmsg sendmsg(MSG_GS, GS_OP_EMIT, 0)", "s_endpgm"]),
        ],
    ];
    for blocks in kept {
        let lines: usize = blocks.iter().map(|(_, lines)| lines.len()).sum();
        let left = forwarded(blocks);
        assert_eq!(left.len(), lines, "{left:?}");
        assert!(!left.contains(&"v_mov_b32_e32 v0, s4".to_owned()), "{left:?}");
    }
}
