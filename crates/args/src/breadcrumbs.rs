//! The options of `unwedge breadcrumbs`.

use clap::{Args, Subcommand};
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;
use unwedge_view::value::duration;

/// `breadcrumbs`
#[derive(Args, Debug)]
pub struct Breadcrumbs {
    /// What to do.
    #[command(subcommand)]
    pub command: BreadcrumbsCommand,
}

/// The commands of `breadcrumbs`.
#[derive(Debug, Subcommand)]
pub enum BreadcrumbsCommand {
    /// Receive breadcrumbs and say where the GPU is
    #[command(
        after_help = "Each line is NUMBER:HITS, then the packet of the capture. What came of all is printed at the end: \
        after SIGINT or SIGTERM, or --idle. Breadcrumbs of one sender are shown; another one is shown once that has been silent for five \
        seconds, unless --from says whose are wanted.\n\n\
        Examples:\n  unwedge breadcrumbs listen --bind 192.168.0.2 --port 9000\n  \
        unwedge breadcrumbs listen --port 9000 --capture game.rd.gz\n  \
        TU_BREADCRUMBS=127.0.0.1:9000,break=-1:0 unwedge replay game.rd.gz"
    )]
    Listen(BreadcrumbsListen),
}

/// `breadcrumbs listen`
#[derive(Args, Debug)]
pub struct BreadcrumbsListen {
    /// UDP port; 0: one that is free, which is printed
    #[arg(short, long, value_name = "PORT", default_value = "11113")]
    pub port: u16,
    /// Address to listen at; loopback unless another machine sends
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub bind: IpAddr,
    /// Take breadcrumbs of this machine only
    #[arg(long, value_name = "ADDRESS")]
    pub from: Option<IpAddr>,
    /// The capture that is replayed, with or without breadcrumbs: names the packets
    #[arg(long, value_name = "FILE")]
    pub capture: Option<PathBuf>,
    /// End when nothing has come for this time after a breadcrumb (suffixes s, m, h, d)
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub idle: Option<Duration>,
    /// Print one JSON object at the end instead of text
    #[arg(long)]
    pub json: bool,
}
