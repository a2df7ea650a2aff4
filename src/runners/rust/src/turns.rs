//! Turns with other programs, each of which waits while another runs: docs/runner-contract.md.

use std::env;
use std::io::{Read, Write};
use std::net::TcpStream;

use crate::result::{Failure, Outcome};

const KEY: usize = 32;

/// The connection to who gives the turns.
pub struct Turns {
    stream: TcpStream,
    peer: String,
}

impl Turns {
    /// Connects, where turns are to be taken.
    pub fn join() -> Outcome<Option<Self>> {
        let Some(given) = env::var_os("TRANSECT_TURNS") else {
            return Ok(None);
        };
        let given = given.to_string_lossy();
        let (peer, key) = given.rsplit_once(':').unwrap_or_default();
        if key.len() != KEY || !peer.contains(':') {
            return Err(Failure::new("bad-input", "TRANSECT_TURNS: expected HOST:PORT:KEY"));
        }
        let refused = |error| Failure::new("crash", format!("turns: {peer}: {error}"));
        let mut stream = TcpStream::connect(peer).map_err(refused)?;
        stream.write_all(key.as_bytes()).map_err(refused)?;
        Ok(Some(Turns { stream, peer: peer.to_owned() }))
    }

    /// Says `r`, ready, or `d`, done, and waits; returns the iterations of the next turn, 0: no
    /// more.
    pub fn next(&mut self, said: u8) -> Outcome<i64> {
        let mut count = [0; 8];
        let said = self.stream.write_all(&[said]);
        said.and_then(|()| self.stream.read_exact(&mut count)).map_err(|_| {
            Failure::new("crash", format!("turns: {} ended the connection", self.peer))
        })?;
        Ok(i64::from_le_bytes(count))
    }
}
