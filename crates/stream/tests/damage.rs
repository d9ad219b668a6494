//! Damaged and hostile streams: resynchronization, limits, and that nothing panics or hangs.

mod common;
use common::*;
use unwedge_base::{Buffer, Dwords, Generation, Memory};
use unwedge_hw::Db;
use unwedge_stream::adreno::header::find_packet;
use unwedge_stream::adreno::*;

#[test]
fn garbage_is_skipped_up_to_the_next_packet() {
    let ring =
        cs(Generation::A6xx).op("NOP", &[]).raw(&[0xdead_d00d, 0xffff_ffff]).op("NOP", &[]).op("NOP", &[]);
    for options in [linear(), WalkerOptions::default()] {
        check(
            &ring,
            &Memory::default(),
            options,
            "
            Nop
            trouble at 1: BadHeader { raw: deadd00d, skipped: 2, resynced: true }
            Nop
            Nop",
        );
    }
}

#[test]
fn constants_that_look_like_register_writes_do_not_stop_the_search() {
    let unknown_register = cs(Generation::A6xx).regs(0x3_fffe, &[1]);
    let followed_by_noise = cs(Generation::A6xx).regs(0x8c17, &[2]).raw(&[0xffff_ffff]);
    let ring = cs(Generation::A6xx)
        .raw(&[0x1234_5678])
        .raw(&unknown_register.dwords)
        .raw(&followed_by_noise.dwords)
        .regs(0x8c18, &[3]);
    let (log, state) = walk(&ring, &Memory::default(), WalkerOptions::default());
    assert_eq!(log.troubles, [TroubleKind::BadHeader { raw: 0x1234_5678, skipped: 6, resynced: true }]);
    assert_eq!([0x8c17, 0x8c18].map(|r| state.regs.get(r)), [None, Some(3)]);
}

#[test]
fn before_a5xx_a_chain_of_headers_tells_packets_from_noise() {
    let good = cs(Generation::A3xx).op("NOP", &[0]).regs(0x2010, &[1]).draw(3).op("NOP", &[0]);
    let lone = cs(Generation::A3xx).op("NOP", &[0x9000_0001]).raw(&[0x9000_0001]);
    let ring = cs(Generation::A3xx).raw(&[0x4000_0000]).raw(&lone.dwords).raw(&good.dwords);
    let (log, _) = walk(&ring, &Memory::default(), WalkerOptions::default());
    assert_eq!(log.troubles, [TroubleKind::BadHeader { raw: 0x4000_0000, skipped: 4, resynced: true }]);
    assert_eq!(log.draws.len(), 1);
    // Listing tools read type 4 everywhere, and give up at a dword of no type.
    let ring = cs(Generation::A3xx).raw(&[0xffff_ffff]).raw(&good.dwords);
    let (log, _) = walk(&ring, &Memory::default(), linear());
    let skipped = ring.dwords.len();
    assert_eq!(log.troubles, [TroubleKind::BadHeader { raw: 0xffff_ffff, skipped, resynced: false }]);
}

#[test]
fn zeros_are_no_packets_but_listings_read_them_as_type_0() {
    let ring = cs(Generation::A6xx).raw(&[0, 0, 0, 0]);
    let (log, _) = walk(&ring, &Memory::default(), WalkerOptions::default());
    assert_eq!(log.troubles, [TroubleKind::BadHeader { raw: 0, skipped: 4, resynced: false }]);
    let (log, state) = walk(&ring, &Memory::default(), linear());
    assert_eq!(log.troubles, [TroubleKind::ForeignType { raw: 0 }; 2]);
    assert_eq!(state.regs.get(0), Some(0));
}

#[test]
fn the_start_of_a_window_into_a_ring_is_found() {
    let ring = cs(Generation::A6xx).regs(0x8c17, &[1, 2, 3]).ib(0x1000, 4);
    let (db, window) = (Db::builtin(), Dwords::from(&ring.dwords[..]));
    assert_eq!(find_packet(window, 0, db.gpu(Generation::A6xx)), Some(0));
    assert_eq!(find_packet(window, 1, db.gpu(Generation::A6xx)), Some(4));
    assert_eq!(find_packet(window, 5, db.gpu(Generation::A6xx)), None);
    assert_eq!(find_packet(window, 99, db.gpu(Generation::A6xx)), None);
}

#[test]
fn a_buffer_of_claimed_zeros_costs_no_more_than_the_budget() {
    let mut memory = Memory::default();
    memory.add(Buffer { iova: 0x1000, size: 1 << 40, contents: Some(vec![]), name: String::new() });
    for generation in Generation::ALL {
        for linear in [false, true] {
            let ring = cs(generation).ib(0x1000, 0xffff_fff0);
            let (log, _) = walk(&ring, &memory, WalkerOptions { linear, budget: 10_000 });
            assert!(log.events < 20_000, "{generation} {}", log.events);
            assert!(!log.troubles.is_empty());
        }
    }
}

#[test]
fn a_packet_too_short_for_what_it_is_is_reported() {
    let db = Db::builtin();
    for generation in Generation::ALL {
        let gpu = db.gpu(generation);
        for name in (0..128).filter_map(|o| gpu.packet_name(o)).filter_map(|n| n.strip_prefix("CP_")) {
            if name.contains('/') || generation < Generation::A5xx {
                continue;
            }
            for linear in [false, true] {
                let ring = cs(generation).op(name, &[]).op("NOP", &[]);
                let (log, _) =
                    walk(&ring, &Memory::default(), WalkerOptions { linear, ..WalkerOptions::default() });
                let short = matches!(log.troubles[..], [] | [TroubleKind::ShortPacket { .. }]);
                assert!(short, "{generation} CP_{name}: {:?}", log.troubles);
            }
        }
    }
    let (log, _) = walk(&cs(Generation::A6xx).op("INDIRECT_BUFFER", &[0x1000]), &Memory::default(), linear());
    assert_eq!(log.troubles, [TroubleKind::ShortPacket { needed: 3 }]);
}

/// xorshift64*.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u32 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) as u32
    }

    fn below(&mut self, n: u32) -> u32 {
        self.next() % n
    }

    /// A number that packets are likely to trip over.
    fn dword(&mut self) -> u32 {
        match self.below(8) {
            0 => 0,
            1 => u32::MAX,
            2 => self.below(0x20),
            3 => 0x1000 + self.below(0x100) * 4,
            4 => 1 << self.below(32),
            _ => self.next(),
        }
    }

    /// Packets of every kind with payloads of random length and content, now and then noise.
    fn stream(&mut self, generation: Generation, packets: u32) -> Vec<u32> {
        use unwedge_stream::adreno::header::AdrenoPacketHeader;
        let mut out = Vec::new();
        for _ in 0..packets {
            let count = self.below(10);
            let header = match self.below(8) {
                0 => AdrenoPacketHeader::Registers { reg: self.next() & 0xffff, count },
                _ => AdrenoPacketHeader::Operation { opcode: self.below(128) as u8, count },
            };
            match header.encode(generation) {
                Some(raw) if self.below(40) != 0 => out.push(raw),
                _ => out.push(self.next()),
            }
            out.extend((0..count).map(|_| self.dword()));
        }
        out
    }
}

#[test]
fn listings_read_a_cut_packet_to_the_end_of_the_buffer_that_the_stream_lies_in() {
    let stream = cs(Generation::A4xx).regs(0x57c, &[1, 2, 3]);
    let memory = memory(&[(0x1000, &stream.dwords)]);
    let (db, ring) = (Db::builtin(), memory.dwords(0x1000).expect("memory").take(3));
    let seen = |options, ring: Dwords<'_>| {
        let mut walker = AdrenoWalker::new(db.gpu(Generation::A4xx), &memory, options);
        walker.walk(ring, Some(0x1000), &mut Log::default());
        [0x57c, 0x57d, 0x57e].map(|reg| walker.state.regs.get(reg))
    };
    assert_eq!(seen(linear(), ring), [Some(1), Some(2), Some(3)]);
    assert_eq!(seen(WalkerOptions::default(), ring), [Some(1), Some(2), None]);
    let copy = ring.stored().to_vec();
    let behind = "a copy lies nowhere: what is behind it is not what is in memory";
    assert_eq!(seen(linear(), Dwords::from(&copy[..])), [Some(1), Some(2), Some(0)], "{behind}");
}

#[test]
fn random_streams_end_and_their_events_nest() {
    let db = Db::builtin();
    let mut random = Random(0x5eed_0001);
    for round in 0..1500 {
        let generation = Generation::ALL[round % Generation::ALL.len()];
        let mut memory = Memory::default();
        for i in 0..4 {
            let contents = random.stream(generation, 20);
            let size = contents.len() as u64 * 4 + u64::from(random.below(64));
            let contents = (random.below(8) != 0).then_some(contents);
            memory.add(Buffer { iova: 0x1000 + i * 0x100, size, contents, name: String::new() });
        }
        let mut ring = random.stream(generation, 30);
        if random.below(4) == 0 {
            ring = (0..200).map(|_| random.next()).collect();
        }
        for _ in 0..random.below(4) {
            let at = random.below(ring.len() as u32) as usize;
            ring[at] ^= 1 << random.below(32);
        }
        let options = WalkerOptions { linear: round % 2 == 0, budget: 20_000 };
        let mut walker = AdrenoWalker::new(db.gpu(generation), &memory, options);
        let mut log = Log::default();
        let iova = (random.below(2) == 0).then_some(u64::MAX - 64);
        walker.walk(Dwords::new(&ring, ring.len() + random.below(100) as usize), iova, &mut log);
        log.finish();
        assert!(log.events < 200_000, "round {round}: {} events", log.events);
    }
}
