//! Where the runs of a study take place.

use std::fmt;
use std::str::FromStr;

/// Predicted, measured, or both side by side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum On {
    /// In virtual time on a modelled machine: `sim`.
    #[default]
    Sim,
    /// In real time on the kernel of this host: `host`.
    Host,
    /// First in virtual, then in real time: `sim,host`.
    Both,
}

impl On {
    /// Does anything run on this host?
    pub fn measures(self) -> bool {
        self != On::Sim
    }
}

impl fmt::Display for On {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            On::Sim => "sim",
            On::Host => "host",
            On::Both => "sim,host",
        })
    }
}

impl FromStr for On {
    type Err = String;

    /// Reads `sim`, `host` or both, separated by a comma.
    fn from_str(text: &str) -> Result<On, String> {
        match text.split(',').map(str::trim).collect::<Vec<_>>().as_slice() {
            ["sim"] => Ok(On::Sim),
            ["host"] => Ok(On::Host),
            ["sim", "host"] | ["host", "sim"] => Ok(On::Both),
            _ => Err(format!("`{text}` is no place to run: write sim, host or sim,host")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read() {
        assert_eq!("sim".parse(), Ok(On::Sim));
        assert_eq!("host".parse(), Ok(On::Host));
        assert_eq!("sim, host".parse(), Ok(On::Both));
        assert_eq!("host,sim".parse(), Ok(On::Both));
        for on in [On::Sim, On::Host, On::Both] {
            assert_eq!(on.to_string().parse(), Ok(on));
        }
        for wrong in ["", "sim,sim", "here", "sim,host,sim"] {
            assert!(wrong.parse::<On>().unwrap_err().contains("sim,host"), "{wrong}");
        }
    }
}
