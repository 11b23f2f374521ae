//! Messages between the driver and a worker: a length followed by that many bytes.
#![allow(unsafe_code, reason = "send with MSG_NOSIGNAL has no safe interface")]

use super::process::{Event, Process};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::time::Instant;

/// Maximum length of a response: the largest result that is compared, plus its description.
const LONGEST: u64 = 80 << 20;

/// One end of a connection.
pub(super) struct Wire(UnixStream);

/// Why there is no response.
#[derive(Debug)]
pub(super) enum Silence {
    /// The worker has ended.
    Ended,
    /// The deadline has passed.
    Late,
    /// The connection failed.
    Failed(io::Error),
}

impl Wire {
    /// Returns the driver's end and the worker's end.
    pub(super) fn pair() -> io::Result<(Wire, UnixStream)> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        Ok((Wire(ours), theirs))
    }

    /// Sends a message and waits for the response.
    pub(super) fn ask(
        &mut self,
        message: &[u8],
        process: &Process,
        deadline: Instant,
    ) -> Result<Vec<u8>, Silence> {
        let whole = [&(message.len() as u64).to_le_bytes(), message].concat();
        self.send(&whole, process, deadline)?;
        self.hear(process, deadline)
    }

    /// Waits for a message.
    pub(super) fn hear(
        &mut self,
        process: &Process,
        deadline: Instant,
    ) -> Result<Vec<u8>, Silence> {
        let mut length = [0; 8];
        self.read(&mut length, process, deadline)?;
        let length = u64::from_le_bytes(length);
        if length > LONGEST {
            return Err(Silence::Failed(io::Error::other("invalid response")));
        }
        let mut message = vec![0; length as usize];
        self.read(&mut message, process, deadline)?;
        Ok(message)
    }

    fn send(&self, mut bytes: &[u8], process: &Process, deadline: Instant) -> Result<(), Silence> {
        let fd = self.0.as_raw_fd();
        while !bytes.is_empty() {
            // SAFETY: `bytes` is valid for reads of its length during the call.
            let sent =
                unsafe { libc::send(fd, bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL) };
            if let Ok(sent) = usize::try_from(sent) {
                bytes = &bytes[sent..];
                continue;
            }
            let error = io::Error::last_os_error();
            match error.kind() {
                io::ErrorKind::WouldBlock => wait(process, fd, libc::POLLOUT, deadline)?,
                io::ErrorKind::Interrupted => {}
                io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => {
                    return Err(Silence::Ended);
                }
                _ => return Err(Silence::Failed(error)),
            }
        }
        Ok(())
    }

    fn read(
        &mut self,
        mut room: &mut [u8],
        process: &Process,
        deadline: Instant,
    ) -> Result<(), Silence> {
        while !room.is_empty() {
            match self.0.read(room) {
                Ok(0) => return Err(Silence::Ended),
                Ok(read) => room = &mut room[read..],
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => {
                        wait(process, self.0.as_raw_fd(), libc::POLLIN, deadline)?;
                    }
                    io::ErrorKind::Interrupted => {}
                    io::ErrorKind::ConnectionReset => return Err(Silence::Ended),
                    _ => return Err(Silence::Failed(error)),
                },
            }
        }
        Ok(())
    }
}

/// Waits until the connection is ready.
fn wait(process: &Process, fd: i32, events: i16, deadline: Instant) -> Result<(), Silence> {
    match process.wait_for(Some((fd, events)), deadline) {
        Event::Ready => Ok(()),
        Event::Ended => Err(Silence::Ended),
        Event::Late => Err(Silence::Late),
    }
}

/// Writes a message.
#[derive(Default)]
pub(super) struct Written(pub(super) Vec<u8>);

impl Written {
    pub(super) fn new(kind: u8) -> Written {
        Written(vec![kind])
    }

    pub(super) fn text(mut self, text: &str) -> Written {
        self.0.extend((text.len() as u64).to_le_bytes());
        self.0.extend(text.as_bytes());
        self
    }

    pub(super) fn number(mut self, number: u64) -> Written {
        self.0.extend(number.to_le_bytes());
        self
    }
}

/// Reads a message. Methods return `None` if the message is too short.
pub(super) struct Taken<'a>(pub(super) &'a [u8]);

impl<'a> Taken<'a> {
    pub(super) fn bytes(&mut self, length: u64) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(usize::try_from(length).ok()?)?;
        self.0 = rest;
        Some(taken)
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        Some(self.bytes(1)?[0])
    }

    pub(super) fn number(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.bytes(8)?.try_into().ok()?))
    }

    pub(super) fn float(&mut self) -> Option<f64> {
        Some(f64::from_bits(self.number()?))
    }

    pub(super) fn text(&mut self) -> Option<String> {
        let length = self.number()?;
        Some(String::from_utf8_lossy(self.bytes(length)?).into_owned())
    }
}
