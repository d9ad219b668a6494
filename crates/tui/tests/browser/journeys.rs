//! What a user does, step by step, and what the screen then shows.

use crate::driver::{Driver, SIZES, with_document};
use unwedge_testkit::devcore::DevcoreBuilder;
use unwedge_testkit::pm4::{CP_NOP, CP_WAIT_REG_MEM, indirect_buffer, pkt4, pkt7};
use unwedge_testkit::{bundle, hangs, rd};
use unwedge_tui::{App, Event, Key, Reaction, View};

const RING: u64 = 0x1_0000_0000;
const IB: u64 = 0x1_0010_0000;

/// A ring that calls a buffer, which writes a register and waits.
fn dump() -> Vec<u8> {
    let ib = [
        pkt4(0x8010, &[0x11, 0x22]),
        pkt7(CP_NOP, &[0x1234_5678]),
        pkt7(CP_WAIT_REG_MEM, &[0x13, 0x2000, 1, 7, u32::MAX, 16]),
    ]
    .concat();
    let ring = [pkt7(CP_NOP, &[0]), indirect_buffer(IB, ib.len() as u32), pkt7(CP_NOP, &[0xabc])].concat();
    DevcoreBuilder::a6xx()
        .ring(RING, &ring)
        .bo(IB, 0x1000, "the buffer", &ib)
        .register(0x210, 0x0080_0001)
        .process("testapp", "testapp --hang")
        .text()
}

fn drive<R>(bytes: &[u8], size: (u16, u16), then: impl FnOnce(&mut Driver<'_>) -> R) -> R {
    with_document("dump.devcore", bytes, |document| then(&mut Driver::new(App::new(document), size)))
}

#[test]
fn the_first_screen_is_the_verdict() {
    drive(&dump(), SIZES[0], |driver| {
        let screen = driver.screen();
        assert!(screen[0].starts_with("dump.devcore — an msm devcoredump — "), "{screen:?}");
        assert!(screen[1].contains("1 Verdict") && screen[1].contains("6 File"), "{screen:?}");
        assert!(driver.text().contains("testapp"), "{}", driver.text());
        assert!(driver.status().starts_with("h: keys"));
    });
}

#[test]
fn an_ib_is_folded_followed_and_left() {
    drive(&dump(), SIZES[1], |driver| {
        driver.keys("2");
        assert!(driver.selected().contains("ring 0"), "{}", driver.text());
        driver.keys("\ng");
        assert!(driver.text().contains("CP_INDIRECT_BUFFER"), "{}", driver.text());
        driver.keys("-");
        assert!(!driver.text().contains("0x12345678"), "folded:\n{}", driver.text());
        driver.keys("g/CP_INDIRECT_BUFFER\n");
        assert!(driver.selected().contains("CP_INDIRECT_BUFFER"), "{}", driver.text());
        driver.keys("\n");
        assert!(
            driver.selected().contains("0x000100100000"),
            "the first packet of the IB:\n{}",
            driver.text()
        );
        driver.keys("\x08");
        assert!(driver.selected().contains("CP_INDIRECT_BUFFER"), "back:\n{}", driver.text());
    });
}

#[test]
fn fields_of_a_packet_are_unfolded() {
    drive(&dump(), SIZES[1], |driver| {
        driver.keys("2\n+g/CP_WAIT_REG_MEM\n");
        let before = driver.text().lines().filter(|line| line.contains("REF")).count();
        driver.press(Key::Right);
        let open = driver.text();
        assert!(open.lines().filter(|line| line.contains("REF")).count() > before, "{open}");
        driver.press(Key::Left);
        assert_eq!(driver.text().lines().filter(|line| line.contains("REF")).count(), before);
    });
}

#[test]
fn search_goes_both_ways_and_says_when_there_is_nothing() {
    drive(&dump(), SIZES[0], |driver| {
        driver.keys("2\n+g/CP_NOP\n");
        let first = driver.selected();
        driver.keys("n");
        let second = driver.selected();
        assert!(first.contains("CP_NOP") && second.contains("CP_NOP") && first != second);
        driver.keys("N");
        assert_eq!(driver.selected(), first);
        driver.keys("/no such packet\n");
        assert!(driver.status().contains("not found"), "{}", driver.status());
        assert_eq!(driver.selected(), first);
    });
}

#[test]
fn addresses_are_jumped_to() {
    drive(&dump(), SIZES[0], |driver| {
        driver.keys(&format!(":{:#x}\n", IB + 4 * 3));
        assert!(driver.selected().contains("CP_NOP"), "{}", driver.text());
        driver.keys(&format!(":{:#x}\n", IB + 0x800));
        assert!(driver.text().contains("the buffer at 0x100100000"), "{}", driver.text());
        driver.keys(":0x7fff00000000\n");
        assert!(driver.status().contains("no packet and no buffer"), "{}", driver.status());
        driver.keys(":0xzz\n");
        assert!(driver.status().contains("is not an address"));
    });
}

#[test]
fn registers_are_those_of_the_selected_packet_and_are_found_by_name() {
    drive(&dump(), SIZES[1], |driver| {
        driver.keys("2\n+g/0x12345678\nr");
        let screen = driver.text();
        assert!(screen.contains("before packet"), "{screen}");
        assert!(screen.contains("0x00000011") && screen.contains("0x00000022"), "{screen}");
        driver.keys(":RBBM_STATUS\n");
        assert!(
            driver.selected().contains("RBBM_STATUS") && driver.selected().contains("0x00800001"),
            "{}",
            driver.text()
        );
        driver.keys("&nothing like it\n");
        assert!(!driver.text().contains("RBBM_STATUS"));
        driver.keys("&\n");
        assert!(driver.text().contains("RBBM_STATUS"));
    });
}

#[test]
fn buffers_are_shown_in_every_format() {
    drive(&dump(), SIZES[0], |driver| {
        driver.keys("4/the buffer\n\n");
        let mut seen = Vec::new();
        for _ in 0..7 {
            let status = driver.status();
            seen.push(
                status
                    .split(" as ")
                    .nth(1)
                    .unwrap_or_default()
                    .split(" (f)")
                    .next()
                    .unwrap_or_default()
                    .to_owned(),
            );
            driver.keys("f");
        }
        assert_eq!(seen, ["bytes", "dwords", "qwords", "floats", "halves", "text", "ir3 a6xx"]);
        driver.keys(":as gfx1030\n");
        assert!(driver.status().contains("as gfx1030"), "{}", driver.status());
        driver.keys(":as tgl\n:as afuc a6xx\n:as dwords\n");
        assert!(
            driver.text().contains("48801002 00000011") || driver.text().contains("00000011 00000022"),
            "{}",
            driver.text()
        );
        driver.keys(":as porridge\n");
        assert!(driver.status().contains("is not a format"));
    });
}

#[test]
fn a_finding_leads_to_its_place() {
    let hang = hangs::hangs(hangs::HangRun::BOTH[0]).into_iter().find(|hang| hang.name.starts_with("msm"));
    let hang = hang.expect("a hang of msm");
    drive(&hang.files[0].1, SIZES[1], |driver| {
        driver.keys("/STOP\n");
        driver.keys("\n");
        assert!(driver.selected().starts_with('>'), "{}", driver.text());
        driver.keys("g1:hang\n");
        assert!(driver.selected().starts_with('>'), "{}", driver.text());
        driver.keys("\x08/STOP\n\n");
        driver.keys("\x08");
        assert!(driver.selected().starts_with("STOP"), "{}", driver.text());
    });
}

#[test]
fn a_capture_starts_with_its_submits() {
    let bytes = rd::capture(630, 3);
    with_document("capture.rd", &bytes, |document| {
        let mut driver = Driver::new(App::new(document), SIZES[1]);
        assert!(driver.text().contains("submit 2 of synthetic"), "{}", driver.text());
        driver.keys("j\n");
        assert!(driver.text().contains("IB2 at 0x10000000"), "{}", driver.text());
        driver.keys("4");
        assert!(driver.text().contains("0x000020000000"), "{}", driver.text());
        driver.keys("\n");
        assert!(driver.status().contains("as bytes"), "{}", driver.text());
        driver.keys("6");
        assert!(driver.text().contains("3 submits"), "{}", driver.text());
    });
}

/// Work has the numbers that listings and queries give it.
#[test]
fn work_of_a_capture_counts_over_all_submits() {
    let bytes = rd::capture(630, 3);
    with_document("capture.rd", &bytes, |document| {
        let mut driver = Driver::new(App::new(document), SIZES[1]);
        driver.keys("j\n+g/, draw \n");
        let selected = driver.selected();
        let number = selected
            .split(", draw ")
            .nth(1)
            .and_then(|rest| rest.split([':', ',', ' ']).next())
            .unwrap_or_default();
        let first: u32 = number.parse().unwrap_or_else(|_| panic!("{selected}"));
        assert!(first >= 32, "submit 0 starts work, too: {selected}");
        driver.keys(&format!("1:draw {}\n", first + 1));
        assert!(driver.selected().contains(&format!(", draw {}", first + 1)), "{}", driver.text());
    });
}

#[test]
fn functions_of_a_code_object_are_its_shaders() {
    let object = bundle::code_object("gfx1030");
    with_document("kernel.o", &object, |document| {
        let mut driver = Driver::new(App::new(document), SIZES[0]);
        assert!(driver.text().contains("not a dump"), "{}", driver.text());
        driver.keys("5");
        assert!(driver.text().contains("gfx1030"), "{}", driver.text());
        driver.keys("\n");
        assert!(driver.text().contains("s_endpgm"), "{}", driver.text());
    });
}

#[test]
fn differences_are_a_view_of_two_files() {
    let bytes = dump();
    with_document("dump.devcore", &bytes, |document| {
        let rows = || unwedge_view::browse::Row::lines("the verdicts differ\nat 0x100100000");
        let app = App::new(document).with_differences(Box::new(rows)).starting_with(View::Differences);
        let mut driver = Driver::new(app, SIZES[0]);
        assert!(driver.text().contains("7 Diff") && driver.text().contains("the verdicts differ"));
        driver.keys("j\n");
        assert!(driver.selected().contains("0x000100100000"), "{}", driver.text());
    });
    drive(&bytes, SIZES[0], |driver| assert!(!driver.text().contains("7 Diff")));
}

#[test]
fn keys_are_listed_and_the_browser_is_left() {
    drive(&dump(), SIZES[0], |driver| {
        driver.resize((120, 60));
        driver.keys("h");
        assert!(driver.text().contains("next and previous view"), "{}", driver.text());
        assert!(
            driver.screen().iter().skip(2).rev().skip(1).all(|row| row.chars().count() <= 80),
            "{}",
            driver.text()
        );
        driver.keys("q");
        assert_ne!(driver.last, Reaction::Quit, "closes the keys");
        driver.keys("2\nq");
        assert_ne!(driver.last, Reaction::Quit, "closes the stream");
        driver.keys("q");
        assert_eq!(driver.last, Reaction::Quit);
        driver.press(Key::Control('z'));
        assert_eq!(driver.last, Reaction::Suspend);
        driver.press(Key::Control('c'));
        assert_eq!(driver.last, Reaction::Quit);
    });
}

#[test]
fn the_mouse_selects_opens_and_scrolls() {
    drive(&dump(), SIZES[0], |driver| {
        let column = driver.screen()[1].find("2 Streams").expect("a tab") as u16;
        driver.app.on(Event::Click(column, 1));
        driver.draw();
        assert!(driver.selected().contains("ring 0"), "{}", driver.text());
        driver.app.on(Event::Click(5, 2));
        driver.draw();
        assert!(driver.text().contains("CP_NOP"), "{}", driver.text());
        driver.keys("+g").resize((80, 6));
        let first = driver.screen()[2].clone();
        driver.app.on(Event::Wheel(1));
        driver.draw();
        assert_ne!(driver.screen()[2], first);
    });
}

#[test]
fn without_colour_only_attributes_are_used() {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use ratatui::style::Color;
    with_document("dump.devcore", &dump(), |document| {
        let mut app = App::new(document);
        let mut terminal = Terminal::new(TestBackend::new(80, 24)).expect("a terminal in memory");
        let theme = unwedge_tui::Theme { colour: false };
        terminal.draw(|frame| app.draw(frame, theme)).expect("drawn");
        let buffer = terminal.backend().buffer();
        assert!(buffer.content.iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset));
    });
}
