//! `unwedge decode --around PLACE` as a program, and the packets in the report of `explain`: both name the place that the
//! post-mortem names, of every kind of dump; work by its number is the work that `query` numbers so.

mod captures;
mod program;

use captures::Temporary;
use program::{text, unwedge};
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Output;
use std::time::{Duration, Instant};
use unwedge::base::Generation;
use unwedge_testkit::amdgpu::{AmdgpuBuilder, AmdgpuEra, Gfx, texts};
use unwedge_testkit::data;
use unwedge_testkit::devcore::{DevcoreBuilder, variety};
use unwedge_testkit::{i915, pm4, rd, xe};

/// A dump of every kind that the test kit builds: what it is, and its bytes.
fn dumps() -> Vec<(String, Vec<u8>)> {
    let msm = variety().into_iter().map(|(name, dump)| (format!("msm {name}"), dump));
    let every = |i: &(usize, (String, Vec<u8>))| i.0.is_multiple_of(3);
    let amd = texts().into_iter().enumerate().filter(every).map(|(_, dump)| dump);
    let intel =
        i915::variety().into_iter().chain(xe::variety()).enumerate().filter(every).map(|(_, dump)| dump);
    msm.chain(amd).chain(intel).collect()
}

fn lines(output: &Output) -> Vec<Value> {
    let line = |line: &str| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
    text(&output.stdout).lines().map(line).collect()
}

/// The lines about marked places, by their mark.
fn places(output: &Output) -> BTreeMap<String, Value> {
    let places = lines(output).into_iter().filter(|line| line["type"] == "place");
    places.map(|line| (line["mark"].as_str().expect("a mark").to_owned(), line)).collect()
}

fn around(dump: &[u8], options: &[&str]) -> Output {
    unwedge(&[&["decode", "--json", "-"], options].concat(), dump)
}

/// The report; null for what is not a dump.
fn explained(dump: &[u8]) -> Value {
    let output = unwedge(&["explain", "--json", "-"], dump);
    if output.status.code() == Some(1) {
        return Value::Null;
    }
    serde_json::from_slice(&output.stdout).expect("one object")
}

/// The packets of a report that have a mark.
fn marked<'v>(report: &'v Value, mark: &str) -> Vec<&'v Value> {
    let excerpts = report["packets"].as_array().map_or(&[][..], Vec::as_slice);
    let packets = excerpts.iter().flat_map(|excerpt| excerpt["packets"].as_array().expect("packets"));
    packets.filter(|packet| packet["mark"] == mark).collect()
}

#[test]
fn the_place_is_that_of_the_post_mortem() {
    let mut shown = BTreeMap::new();
    for (name, dump) in dumps() {
        let report = explained(&dump);
        let output = around(&dump, &["--around", "hang"]);
        let stops = marked(&report, "stop");
        if output.status.code() == Some(1) {
            assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{name}");
            assert!(stops.is_empty(), "{name}: the report has packets of a place that is not there");
            let advice = report["advice"].as_array().map_or(&[][..], Vec::as_slice);
            let advised =
                |advice: &Value| advice["action"].as_str().is_some_and(|action| action.contains("--around"));
            assert!(!advice.iter().any(advised), "{name}: the report advises what cannot be done");
            continue;
        }
        *shown.entry(name.split(' ').next().unwrap_or_default().to_owned()).or_insert(0) += 1;
        let places = places(&output);
        let Some(stop) = places.get("stop") else {
            assert!(places.contains_key("caller") && stops.is_empty(), "{name}: {places:?}");
            continue;
        };
        assert_eq!(stop["iova"], stops[0]["address"], "{name}: both show the same packet");
        assert_eq!((&stop["name"], &stop["index"]), (&stops[0]["name"], &stops[0]["index"]), "{name}");
        let hang = &report["hang"];
        if !hang["address"].is_null() {
            assert_eq!(stop["iova"], hang["address"], "{name}");
            if !stop["name"].is_null() {
                assert_eq!(stop["name"], hang["packet"], "{name}");
            }
        }
        let listing = unwedge(&["decode", "-", "--around", "hang"], &dump);
        let text = text(&listing.stdout);
        assert!(text.lines().any(|line| line.starts_with('>')), "{name}: {text}");
        assert!(text.contains("\nstate at the stop"), "{name}: {text}");
    }
    assert!(shown.len() > 3 && shown["msm"] > 3, "dumps of every driver: {shown:?}");
}

#[test]
fn a_report_shows_packets_on_one_screen() {
    for (name, dump) in dumps() {
        let report = text(&unwedge(&["explain", "-"], &dump).stdout);
        let sections = explained(&dump)["packets"].as_array().map_or(0, Vec::len);
        assert_eq!(report.contains("\nPACKETS "), sections > 0, "{name}: {report}");
        let mut rest = report.lines().skip_while(|line| !line.starts_with("PACKETS "));
        let section: Vec<&str> = rest.by_ref().take_while(|line| !line.is_empty()).collect();
        assert!(section.len() <= 12, "{name}: {report}");
        let own = section.iter().skip(1).filter(|line| line.starts_with("         >"));
        assert_eq!(own.count() > 0, sections > 0, "{name}: {report}");
        let verbose = text(&unwedge(&["explain", "-v", "-"], &dump).stdout);
        assert_eq!(verbose.contains("\nPACKETS "), sections > 0, "{name}");
    }
}

/// Rows of `query`: kind and number of each piece of work of the first stream that has some.
fn work(dump: &[u8]) -> Vec<(String, String)> {
    let rows = text(&unwedge(&["query", "-", "--format", "csv"], dump).stdout);
    let mut rows = rows.lines().skip(1).map(|row| row.split(',').map(str::to_owned).collect::<Vec<_>>());
    let Some(first) = rows.next() else { return Vec::new() };
    let own = rows.take_while(|row| row[0] == first[0]).map(|row| (row[2].clone(), row[1].clone()));
    [(first[2].clone(), first[1].clone())].into_iter().chain(own).collect()
}

#[test]
fn work_is_that_of_its_number_and_kind() {
    let mut kinds = BTreeMap::new();
    for (name, dump) in dumps() {
        for (kind, number) in work(&dump).into_iter().take(2) {
            let output = around(&dump, &["--around", &kind, &number, "-C", "1"]);
            assert_eq!(output.status.code(), unwedge(&["query", "-"], &dump).status.code(), "{name}");
            let place = &places(&output)["place"];
            assert_eq!(place["work"]["kind"], kind, "{name}");
            assert_eq!(place["work"]["number"].to_string(), number, "{name}");
            let any = around(&dump, &["--around", &format!("draw={number}"), "-C", "1"]);
            assert_eq!(any.stdout, output.stdout, "{name}: `draw` is work of any kind");
            let other = if kind == "blit" { "dispatch" } else { "blit" };
            let output = around(&dump, &["--around", &format!("{other} {number}")]);
            // Another stream may have such work.
            if output.status.code() == Some(1) {
                assert!(text(&output.stderr).contains(&format!("no {other} {number}: ")), "{name}");
            }
            *kinds.entry(kind).or_insert(0) += 1;
        }
        let none = around(&dump, &["--around", "draw", "4000000"]);
        assert_eq!(none.status.code(), Some(1), "{name}");
        assert!(none.stdout.is_empty() && !none.stderr.is_empty(), "{name}");
    }
    assert!(kinds.contains_key("draw"), "{kinds:?}");
}

/// A ring that draws twice, with a target of its own each time.
fn drawing() -> Vec<u8> {
    let draw = pm4::pkt7(pm4::CP_DRAW_INDX_OFFSET, &[0x8004, 1, 3]);
    let base = |value: u32| pm4::pkt4(0x8825, &[value, 1]);
    let ring = [base(0x1000), draw.clone(), base(0x2000), draw].concat();
    DevcoreBuilder::a6xx().ring(0x1_0000_1000, &ring).text()
}

#[test]
fn the_state_is_what_query_shows() {
    let dump = drawing();
    for (number, base) in [("0", "0x100001000"), ("1", "0x100002000")] {
        let output = around(&dump, &["--around", "draw", number, "-C", "0"]);
        let place = &places(&output)["place"];
        let state = place["state"].as_array().expect("registers");
        let base_of = state.iter().find(|value| value["name"] == "RB_MRT[0].BASE").expect("its target");
        assert_eq!(base_of["value"], base);
        let asked = unwedge(&["query", "-", "RB_MRT[0].BASE", "--draw", number, "--format", "csv"], &dump);
        assert!(text(&asked.stdout).trim_end().ends_with(base), "{}", text(&asked.stdout));
        let of_window = lines(&output).iter().filter(|line| line["type"] == "packet").count();
        assert_eq!(of_window, 1, "-C 0 is the packet alone");
    }
    let listing = text(&unwedge(&["decode", "-", "--around", "draw", "1"], &dump).stdout);
    let state = listing.split("\nstate at draw 1\n").nth(1).expect("its state");
    assert!(
        state.lines().next().is_some_and(|line| line.trim() == "RB_MRT[0].BASE: 0x100002000"),
        "{listing}"
    );
}

#[test]
fn an_address_is_that_of_the_packet_that_holds_it() {
    let dump = drawing();
    // The first draw is three dwords into the ring, and has four.
    for address in ["0x10000100c", "0x100001010", "0x10000101b"] {
        let output = around(&dump, &["--around", address]);
        assert_eq!(output.status.code(), Some(0), "{address}: {}", text(&output.stderr));
        let place = &places(&output)["place"];
        assert_eq!(
            (&place["iova"], &place["visits"]),
            (&"0x000000010000100c".into(), &1.into()),
            "{address}"
        );
        assert_eq!(place["work"]["number"], 0, "{address}");
    }
    let next = &places(&around(&dump, &["--around", "0x10000101c"]))["place"];
    assert_eq!(next["iova"], "0x000000010000101c");
    for (address, near) in [
        ("0x10", "the nearest above is 0x100001000"),
        ("0x200000000", "the nearest buffer below is 0x100001000"),
    ] {
        let output = around(&dump, &["--around", address]);
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stderr).contains(near), "{}", text(&output.stderr));
    }
    // A buffer that nothing calls.
    let held = DevcoreBuilder::a6xx()
        .ring(0x1_0000_1000, &[0x7010_8000])
        .bo(0x1_0010_0000, 0x1000, "data", &[1, 2, 3])
        .text();
    let output = around(&held, &["--around", "0x100100004"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stderr).contains("0x4 bytes into the buffer 0x100100000"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn where_the_stream_of_the_stop_is_missing_its_call_is_shown() {
    const IB: u64 = 0x1_0020_0000;
    let nop = pm4::pkt7(0x10, &[]);
    let ring = [nop.clone(), pm4::indirect_buffer(IB, 16), nop].concat();
    // CP_IB1_BASE and CP_IB1_REM_SIZE.
    let dump =
        DevcoreBuilder::a6xx().ring(0x1_0000_1000, &ring).register64(0x928, IB).register(0x92a, 5).text();
    assert!(explained(&dump)["packets"].is_null(), "the report does not take the call for the stop");
    let output = around(&dump, &["--around", "hang"]);
    let places = places(&output);
    assert_eq!(places["caller"]["iova"], "0x0000000100001004");
    assert_eq!(places["caller"]["name"], "CP_INDIRECT_BUFFER");
    let listing = text(&unwedge(&["decode", "-", "--around", "hang"], &dump).stdout);
    assert!(listing.contains("the dump does not hold the stream at 0x100200000"), "{listing}");
}

#[test]
fn of_several_visits_the_nearest_to_the_stop_counts() {
    const IB: u64 = 0x8001_0010_0000;
    let call = pm4::pkt3(0x3f, &[IB as u32, (IB >> 32) as u32, 3]);
    let ring = [call.clone(), call.clone(), call].concat();
    let dump = AmdgpuBuilder::new(Gfx::V10).era(AmdgpuEra::V7_1).timeout("gfx_0.0.0");
    let dump = dump.ring("gfx_0.0.0", 0, 12, &ring).ib(IB, &pm4::pkt3(0x2d, &[3, 2])).text();
    let output = around(&dump, &["--around", "0x800100100000"]);
    let place = &places(&output)["place"];
    assert_eq!(place["visits"], 3, "{}", text(&output.stdout));
    let listing = text(&unwedge(&["decode", "-", "--around", "0x800100100000"], &dump).stdout);
    assert!(listing.contains("come by here 3 times"), "{listing}");
}

#[test]
fn places_of_captures() {
    for gpu in [220, 330, 430, 530, 630, 740] {
        let capture = rd::capture(gpu, 2);
        let file = Temporary::new(&format!("around-{gpu}.rd"), &capture);
        for options in [&["--around", "draw", "40"][..], &["--around", "draw 40"], &["--around=draw=40"]] {
            let output = unwedge(&[&["decode", "--json", file.path()], options].concat(), b"");
            assert_eq!(output.status.code(), Some(0), "{gpu}: {}", text(&output.stderr));
            let place = &places(&output)["place"];
            assert_eq!((&place["work"]["number"], &place["work"]["kind"]), (&40.into(), &"draw".into()));
            assert_eq!(place["stream"], "submit 0", "{gpu}");
            assert_eq!(lines(&output).last().map(|line| &line["type"]), Some(&"end".into()));
            let draw = lines(&output).into_iter().find(|line| line["type"] == "draw" && line["number"] == 40);
            assert_eq!(draw.expect("the event of the draw")["count"], 27, "the eighth of a frame's draws");
        }
        // 32 draws for each of 4 tiles; the buffer is the same one.
        let second = &places(&around(&capture, &["--around", "draw", "130"]))["place"];
        assert_eq!(second["stream"], "submit 1", "{gpu}");
        let piped = unwedge(&["decode", "-", "--around", "draw", "130"], &capture);
        let read = unwedge(&["decode", file.path(), "--around", "draw", "130"], b"");
        assert_eq!(piped.stdout, read.stdout);
        assert!(text(&piped.stdout).lines().any(|line| line.starts_with('>')));
        let visited = &places(&around(&capture, &["--around", "0x10000000"]))["place"];
        assert_eq!(visited["visits"], 4, "{gpu}: once for each tile");
        for (place, why) in [
            ("hang", "a capture does not record a hang"),
            ("draw 256", "up to number 255"),
            ("blit 3", "3 is a draw"),
            ("0x4", "no packet at 0x4"),
        ] {
            let output = around(&capture, &["--around", place]);
            assert_eq!(output.status.code(), Some(1), "{gpu}, {place}");
            assert!(text(&output.stderr).contains(why), "{place}: {}", text(&output.stderr));
        }
    }
}

#[test]
fn packets_before_and_after_are_as_many_as_asked_for() {
    let nops = pm4::pkt7(0x10, &[]).repeat(40);
    let draw = pm4::pkt7(pm4::CP_DRAW_INDX_OFFSET, &[0x8004, 1, 3]);
    let dump = DevcoreBuilder::a6xx().ring(0x1_0000_1000, &[nops.clone(), draw, nops].concat()).text();
    let packets = |options: &[&str]| {
        let output = around(&dump, &[&["--around", "draw", "0"], options].concat());
        lines(&output).iter().filter(|line| line["type"] == "packet").count()
    };
    assert_eq!(packets(&[]), 16 + 1 + 8);
    assert_eq!(packets(&["-C", "0"]), 1);
    assert_eq!(packets(&["-C", "5"]), 11);
    assert_eq!(packets(&["--context", "4096"]), 81);
    for wrong in [&["-C", "5000"][..], &["-C", "x"]] {
        let output = around(&dump, &[&["--around", "hang"], wrong].concat());
        assert_eq!(output.status.code(), Some(2));
    }
}

#[test]
fn suspected_work_of_real_dumps_is_shown_beside_the_stop() {
    let folder = data::root().join("adreno/devcoredump");
    let Ok(dump) = std::fs::read(folder.join("crash_prefetch.devcore.gz")) else {
        println!("skipped: no {}", folder.display());
        return;
    };
    let output = around(&dump, &["--around", "hang"]);
    let found = places(&output);
    assert_eq!((&found["stop"]["work"]["number"], &found["stop"]["level"]), (&19.into(), &"IB2".into()));
    let work = |place: &Value| (place["work"]["kind"].clone(), place["work"]["number"].clone());
    assert_eq!(work(&found["suspect"]), ("blit".into(), 18.into()));
    let report = explained(&dump);
    let suspects = marked(&report, "suspect");
    assert_eq!(suspects.len(), 1);
    assert_eq!(work(suspects[0]), ("blit".into(), 18.into()));
    assert_eq!(suspects[0]["address"], found["suspect"]["iova"]);
    let alone = places(&around(&dump, &["--around", "blit", "18"]));
    assert_eq!(alone["place"]["state"], found["suspect"]["state"]);
    let listing = text(&unwedge(&["explain", "-"], &dump).stdout);
    assert!(listing.lines().count() <= 55, "{listing}");
    let dump = std::fs::read(folder.join("crash.devcore.gz")).expect("the other dump");
    let report = explained(&dump);
    assert_eq!(marked(&report, "stop")[0]["word"], "0xdeadd00d");
    assert!(marked(&report, "suspect").is_empty());
}

#[test]
fn every_generation_has_places() {
    for generation in Generation::ALL {
        let dump = DevcoreBuilder::complete(generation).text();
        let output = around(&dump, &["--around", "hang"]);
        assert_eq!(output.status.code(), Some(0), "{generation}: {}", text(&output.stderr));
    }
}

/// Buffers that call one another over and over, none of which a ring leads to.
#[test]
fn buffers_that_call_one_another_take_bounded_time() {
    const BASE: u64 = 0x8001_0010_0000;
    let at = |buffer: u64| BASE + buffer * 0x1000;
    let mut dump = AmdgpuBuilder::new(Gfx::V10).era(AmdgpuEra::V7_1).timeout("gfx_0.0.0");
    for buffer in 0..400 {
        let call = |to: u64| pm4::pkt3(0x3f, &[at(to) as u32, (at(to) >> 32) as u32, 256]);
        let calls: Vec<u32> = (0..64).flat_map(|i| call((buffer * 7 + i * 13) % 400)).collect();
        dump = dump.ib(at(buffer), &calls);
    }
    let dump = dump.text();
    for options in [
        &["explain", "-"][..],
        &["decode", "-", "--around", "draw", "1"],
        &["decode", "-", "--around", "0x4"],
    ] {
        let started = Instant::now();
        let output = unwedge(options, &dump);
        assert!(output.status.code().is_some_and(|code| code < 4), "{options:?}");
        assert!(started.elapsed() < Duration::from_secs(60), "{options:?} took {:?}", started.elapsed());
    }
}
