//! Noise with known true values: times of two identical sides.

use std::f64::consts::TAU;

/// Kind of noise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Noise {
    Normal,
    Lognormal,
    /// One sample in ten is much larger, unbounded.
    Pareto,
    /// Three samples in ten are a fifth larger.
    TwoHeaps,
    /// Half of the samples are a fifth larger, so that the median lies between the modes.
    EvenHeaps,
    /// The clock is as coarse as the noise.
    Coarse,
    /// Autocorrelated, the same for both sides.
    Follows(f64),
    /// Autocorrelated, independent for each side.
    FollowsEach(f64),
    Drift,
    /// Occasional load that slows both sides for eight rounds.
    Bursts,
    /// Load half of the time.
    HalfLoaded,
    /// Load that slows every batch differently.
    RoughBursts,
    /// Load that slows one side at a time.
    BurstsEach,
}

impl Noise {
    pub(crate) const ALL: [Noise; 16] = [
        Noise::Normal,
        Noise::Lognormal,
        Noise::Pareto,
        Noise::TwoHeaps,
        Noise::EvenHeaps,
        Noise::Coarse,
        Noise::Follows(0.5),
        Noise::Follows(0.9),
        Noise::FollowsEach(0.5),
        Noise::FollowsEach(0.7),
        Noise::FollowsEach(0.9),
        Noise::Drift,
        Noise::Bursts,
        Noise::HalfLoaded,
        Noise::RoughBursts,
        Noise::BurstsEach,
    ];

    /// Times of two identical sides, around 100.
    pub(crate) fn pair(self, rounds: usize, random: &mut Random) -> (Vec<f64>, Vec<f64>) {
        let shared = self.of_rounds(rounds, random);
        let a = self.side(&shared, random);
        (a, self.side(&shared, random))
    }

    /// Disturbance that both sides of a round share.
    fn of_rounds(self, rounds: usize, random: &mut Random) -> Vec<f64> {
        match self {
            Noise::Follows(rho) => random.following(rounds, rho),
            Noise::Drift => (0..rounds).map(|i| i as f64 / rounds as f64).collect(),
            Noise::Bursts | Noise::RoughBursts => random.bursts(rounds, 0.05, 8.0),
            Noise::HalfLoaded => random.bursts(rounds, 0.1, 10.0),
            _ => vec![0.0; rounds],
        }
    }

    fn side(self, shared: &[f64], random: &mut Random) -> Vec<f64> {
        let own = match self {
            Noise::FollowsEach(rho) => random.following(shared.len(), rho),
            Noise::BurstsEach => random.bursts(shared.len(), 0.05, 8.0),
            _ => shared.to_vec(),
        };
        own.into_iter().map(|disturbed| self.sample(disturbed, random)).collect()
    }

    fn sample(self, disturbed: f64, random: &mut Random) -> f64 {
        let quiet = 100.0 + random.normal();
        match self {
            Noise::Normal => quiet,
            Noise::Lognormal => 100.0 * (0.5 * random.normal()).exp(),
            Noise::Pareto if random.uniform() < 0.1 => quiet * random.uniform().powf(-1.0 / 1.2),
            Noise::Pareto => quiet,
            Noise::TwoHeaps => quiet + if random.uniform() < 0.3 { 20.0 } else { 0.0 },
            Noise::EvenHeaps => quiet + if random.uniform() < 0.5 { 20.0 } else { 0.0 },
            Noise::Coarse => quiet.round(),
            Noise::Follows(_) => quiet + 5.0 * disturbed,
            Noise::FollowsEach(_) => 100.0 + disturbed,
            Noise::Drift => quiet + 10.0 * disturbed,
            Noise::Bursts | Noise::HalfLoaded | Noise::BurstsEach => quiet * (1.0 + disturbed),
            Noise::RoughBursts => quiet * (1.0 + 2.0 * random.uniform() * disturbed),
        }
    }
}

/// SplitMix64 and distributions based on it.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0xd134_2543_de82_ef95))
    }

    pub(crate) fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64 + f64::EPSILON / 4.0
    }

    pub(crate) fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (TAU * self.uniform()).cos()
    }

    /// Values with standard deviation 1 and lag-1 correlation `rho`.
    pub(crate) fn following(&mut self, n: usize, rho: f64) -> Vec<f64> {
        let mut value = self.normal();
        let fresh = (1.0 - rho * rho).sqrt();
        let next = |_| {
            value = rho * value + fresh * self.normal();
            value
        };
        (0..n).map(next).collect()
    }

    /// 0, or between 1/4 and 3/4 during bursts of mean length `length`.
    pub(crate) fn bursts(&mut self, n: usize, begin: f64, length: f64) -> Vec<f64> {
        let mut is_loaded = self.uniform() < begin * length / (1.0 + begin * length);
        let next = |_| {
            let changes = if is_loaded { 1.0 / length } else { begin };
            is_loaded ^= self.uniform() < changes;
            if is_loaded { 0.25 + 0.5 * self.uniform() } else { 0.0 }
        };
        (0..n).map(next).collect()
    }
}
