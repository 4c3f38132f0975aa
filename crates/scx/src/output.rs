//! Standard output, by a thread of its own: a reader that has stopped must not keep the loader from ending.

use std::io::{self, Write};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::time::Duration;

/// Texts that wait for a slow reader; what comes beyond is dropped.
const WAITING: usize = 64;
/// For what waits in the end.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Writes statistics.
pub struct Output {
    texts: Option<SyncSender<String>>,
    end: Receiver<io::Result<()>>,
}

impl Output {
    /// To this writer, in most cases standard output.
    pub fn new(mut to: impl Write + Send + 'static) -> Output {
        let (texts, written) = mpsc::sync_channel::<String>(WAITING);
        let (ended, end) = mpsc::channel();
        std::thread::spawn(move || {
            let all = written
                .iter()
                .try_for_each(|text| to.write_all(text.as_bytes()).and_then(|()| to.flush()));
            // The receiver is gone once the loader has ended.
            let _ = ended.send(all);
        });
        Output { texts: Some(texts), end }
    }

    /// Returns at once.
    ///
    /// # Errors
    /// Why an earlier text could not be written; nothing is from then on.
    pub fn print(&self, text: String) -> io::Result<()> {
        if let Ok(Err(error)) = self.end.try_recv() {
            return Err(error);
        }
        if let Some(texts) = &self.texts {
            let _ = texts.try_send(text);
        }
        Ok(())
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        self.texts = None;
        let _ = self.end.recv_timeout(LAST_WORDS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn a_reader_that_stops_or_goes_holds_nobody_up() {
        let (mut reader, writer) = io::pipe().unwrap();
        let output = Output::new(writer);
        let began = Instant::now();
        for _ in 0..4 * WAITING {
            output.print("x".repeat(4096)).unwrap();
        }
        drop(output);
        assert!(began.elapsed() < LAST_WORDS * 4, "{:?}", began.elapsed());
        io::Read::read_exact(&mut reader, &mut [0; 4096]).unwrap();

        let (reader, writer) = io::pipe().unwrap();
        let output = Output::new(writer);
        drop(reader);
        let failed = (0..100).find_map(|_| {
            std::thread::sleep(Duration::from_millis(10));
            output.print("x".to_owned()).err()
        });
        assert_eq!(failed.map(|error| error.kind()), Some(io::ErrorKind::BrokenPipe));
    }

    #[test]
    fn what_waits_is_written_in_the_end() {
        let (mut reader, writer) = io::pipe().unwrap();
        let output = Output::new(writer);
        output.print("a\n".to_owned()).unwrap();
        output.print("b\n".to_owned()).unwrap();
        drop(output);
        let mut all = String::new();
        io::Read::read_to_string(&mut reader, &mut all).unwrap();
        assert_eq!(all, "a\nb\n");
    }
}
