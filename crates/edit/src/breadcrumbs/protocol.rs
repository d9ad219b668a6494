//! Datagrams, the value of TU_BREADCRUMBS, and the CPU's side of a breadcrumb.
//!
//! Facts: a datagram of UDP is the number of one breadcrumb, 4 bytes, big endian. Turnip reads TU_BREADCRUMBS as
//! `%[^:]:%d,break=%u:%u`, so -1 is the largest number; it writes no breadcrumbs with numbers below the breakpoint, unless that is -1; it asks at a
//! breadcrumb that is not below the breakpoint once the breakpoint was reached as often as HITS says.

use std::net::{IpAddr, SocketAddr};

/// The datagram of a breadcrumb.
pub fn datagram(breadcrumb: u32) -> [u8; 4] {
    breadcrumb.to_be_bytes()
}

/// A datagram that is not a breadcrumb: it has this many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a breadcrumb is a datagram of 4 bytes, not of {0}")]
pub struct MalformedDatagram(pub usize);

/// Reads a datagram.
///
/// # Errors
/// When it does not have 4 bytes.
pub fn read_datagram(bytes: &[u8]) -> Result<u32, MalformedDatagram> {
    bytes.try_into().map(u32::from_be_bytes).map_err(|_| MalformedDatagram(bytes.len()))
}

/// Where the CPU asks before it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Breakpoint {
    /// The breadcrumb; [`Breakpoint::NEVER`]: none.
    pub breadcrumb: u32,
    /// How often it is passed before.
    pub hits: u32,
}

impl Breakpoint {
    /// The breadcrumb of no breakpoint, which is spelled -1.
    pub const NEVER: u32 = u32::MAX;
}

/// The value of TU_BREADCRUMBS: `192.168.0.2:9000,break=-1:0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreadcrumbTarget {
    /// Where datagrams go.
    pub address: SocketAddr,
    /// Where the CPU asks.
    pub breakpoint: Breakpoint,
}

impl BreadcrumbTarget {
    /// Reads the value.
    ///
    /// # Errors
    /// What is expected.
    pub fn parse(text: &str) -> Result<BreadcrumbTarget, String> {
        let expected =
            || format!("`{text}` is not IP:PORT,break=BREADCRUMB:HITS, such as 127.0.0.1:9000,break=-1:0");
        let (address, breakpoint) = text.split_once(",break=").ok_or_else(expected)?;
        let (ip, port) = address.rsplit_once(':').ok_or_else(expected)?;
        let ip: IpAddr = ip.trim_matches(['[', ']']).parse().map_err(|_| expected())?;
        let port: u16 = port.parse().ok().filter(|port| *port != 0).ok_or_else(expected)?;
        let (breadcrumb, hits) = breakpoint.split_once(':').ok_or_else(expected)?;
        let number = |text: &str| match text {
            "-1" => Ok(Breakpoint::NEVER),
            _ => text.parse().map_err(|_| expected()),
        };
        let breakpoint = Breakpoint { breadcrumb: number(breadcrumb)?, hits: number(hits)? };
        Ok(BreadcrumbTarget { address: SocketAddr::new(ip, port), breakpoint })
    }
}

/// What the CPU does about a breadcrumb.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// A datagram is sent.
    pub sent: bool,
    /// The user is asked before the GPU continues.
    pub stops: bool,
}

/// Breadcrumbs as they come to the CPU, under a breakpoint.
#[derive(Clone, Copy, Debug)]
pub struct BreakGate {
    breakpoint: Breakpoint,
    reached: u32,
}

impl BreakGate {
    /// Nothing has come yet.
    pub fn new(breakpoint: Breakpoint) -> BreakGate {
        BreakGate { breakpoint, reached: 0 }
    }

    /// A breadcrumb has come.
    pub fn arrive(&mut self, breadcrumb: u32) -> Arrival {
        let Breakpoint { breadcrumb: at, hits } = self.breakpoint;
        let counts = at != Breakpoint::NEVER && breadcrumb >= at;
        let stops = counts && self.reached >= hits;
        if breadcrumb == at {
            self.reached = self.reached.saturating_add(1);
        }
        Arrival { sent: at == Breakpoint::NEVER || counts, stops }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_are_big_endian() {
        assert_eq!(datagram(0x0102_0304), [1, 2, 3, 4]);
        assert_eq!(read_datagram(&[1, 2, 3, 4]), Ok(0x0102_0304));
        for bytes in [&[][..], &[1, 2, 3], &[0; 8], &[0; 65_507]] {
            assert_eq!(read_datagram(bytes), Err(MalformedDatagram(bytes.len())));
        }
    }

    #[test]
    fn the_environment_variable_of_turnip() {
        let target = BreadcrumbTarget::parse("10.0.0.2:11113,break=-1:0").expect("a target");
        assert_eq!(target.address.to_string(), "10.0.0.2:11113");
        assert_eq!(target.breakpoint, Breakpoint { breadcrumb: Breakpoint::NEVER, hits: 0 });
        let target = BreadcrumbTarget::parse("[::1]:9,break=17:3").expect("a target");
        assert_eq!(target.breakpoint, Breakpoint { breadcrumb: 17, hits: 3 });
        for bad in [
            "",
            "1.2.3.4",
            "1.2.3.4:5",
            "host:5,break=1:0",
            "1.2.3.4:0,break=1:0",
            "1.2.3.4:5,break=1",
            "1.2.3.4:5,break=x:0",
            "1.2.3.4:70000,break=1:0",
        ] {
            assert!(BreadcrumbTarget::parse(bad).is_err(), "{bad}");
        }
    }

    fn arrivals(breakpoint: Breakpoint, breadcrumbs: &[u32]) -> (Vec<u32>, Vec<usize>) {
        let mut gate = BreakGate::new(breakpoint);
        let (mut sent, mut stops) = (Vec::new(), Vec::new());
        for (at, breadcrumb) in breadcrumbs.iter().enumerate() {
            let arrival = gate.arrive(*breadcrumb);
            sent.extend(arrival.sent.then_some(*breadcrumb));
            stops.extend(arrival.stops.then_some(at));
        }
        (sent, stops)
    }

    #[test]
    fn the_cpu_asks_from_the_breakpoint_on_once_it_was_reached_often_enough() {
        // Two passes over breadcrumbs 1 to 4.
        let passes = [1, 2, 3, 4, 1, 2, 3, 4];
        let breakpoint = |breadcrumb, hits| Breakpoint { breadcrumb, hits };
        assert_eq!(arrivals(breakpoint(Breakpoint::NEVER, 0), &passes), (passes.to_vec(), vec![]));
        assert_eq!(arrivals(breakpoint(3, 0), &passes), (vec![3, 4, 3, 4], vec![2, 3, 6, 7]));
        assert_eq!(arrivals(breakpoint(3, 1), &passes), (vec![3, 4, 3, 4], vec![3, 6, 7]));
        assert_eq!(arrivals(breakpoint(3, 2), &passes), (vec![3, 4, 3, 4], vec![7]));
        assert_eq!(arrivals(breakpoint(9, 0), &passes), (vec![], vec![]));
    }
}
