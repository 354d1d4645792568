//! Splines for ranks with different backends: walkers live on the device of each rank. The hosts compute the values for
//! scripts, with the same bits on all ranks.

use std::any::Any;
use std::sync::Arc;

use super::Ranks;
use crate::backend::splines::{Planes, SplineBatch, SplineShape, SplineTable, Splines};
use crate::backend::walkers::{DeviceWalkers, MonteCarlo, WalkersSpec, monte_carlo};
use crate::error::Result;

struct TwoPlaces {
    device: Arc<dyn Splines>,
    host: Arc<dyn Splines>,
}

impl Splines for TwoPlaces {
    fn shape(&self) -> &SplineShape {
        self.device.shape()
    }

    fn bytes(&self) -> usize {
        self.device.bytes()
    }

    fn evaluate(&self, points: &[[f64; 3]], out: Planes<'_>) -> Result<()> {
        self.host.evaluate(points, out)
    }

    fn batch(&self, points: &[[f64; 3]]) -> Result<Box<dyn SplineBatch + '_>> {
        self.device.batch(points)
    }

    /// The device's: it finds its own table again.
    fn as_any(&self) -> &dyn Any {
        self.device.as_any()
    }
}

impl MonteCarlo for Ranks {
    fn splines(&self, table: Arc<SplineTable>) -> Result<Arc<dyn Splines>> {
        let device = monte_carlo(&self.places.device)?.splines(table.clone())?;
        let host = match self.host() {
            Some(host) if host.name() != self.places.device.name() => monte_carlo(host)?.splines(table)?,
            _ => return Ok(device),
        };
        Ok(Arc::new(TwoPlaces { device, host }))
    }

    fn walkers(&self, spec: WalkersSpec) -> Result<Option<Box<dyn DeviceWalkers>>> {
        monte_carlo(&self.places.device)?.walkers(spec)
    }
}
