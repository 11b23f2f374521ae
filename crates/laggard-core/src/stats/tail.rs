//! Tail probabilities of the normal distribution and of Student's t-distribution.

/// Two-sided 95 % quantile of the standard normal distribution.
pub const NORMAL_95: f64 = 1.959963984540054;
/// Degrees of freedom above which the t-distribution is treated as normal.
const NORMAL_FREEDOM: usize = 200;

/// Two-sided tail probability of the standard normal distribution.
pub fn normal_two_sided(z: f64) -> f64 {
    complement_of_erf(z.abs() / std::f64::consts::SQRT_2)
}

/// Two-sided tail probability of Student's t-distribution. The absolute error is about 1e-15, so smaller
/// probabilities are not accurate.
pub fn student_two_sided(t: f64, freedom: usize) -> f64 {
    if freedom >= NORMAL_FREEDOM {
        return normal_two_sided(t);
    }
    let freedom = freedom.max(1);
    let angle = (t.abs() / (freedom as f64).sqrt()).atan();
    let (sin, cos) = angle.sin_cos();
    let is_odd = freedom % 2 == 1;
    let mut term = if is_odd { cos } else { 1.0 };
    let mut sum = 0.0;
    for step in (if is_odd { 1 } else { 0 }..freedom - 1).step_by(2) {
        sum += term;
        term *= cos * cos * (step + 1) as f64 / (step + 2) as f64;
    }
    let within = match is_odd {
        true => std::f64::consts::FRAC_2_PI * (angle + sin * sum),
        false => sin * sum,
    };
    (1.0 - within).clamp(0.0, 1.0)
}

/// Two-sided 95 % quantile of Student's t-distribution.
pub fn student_95(freedom: usize) -> f64 {
    if freedom >= NORMAL_FREEDOM {
        return NORMAL_95;
    }
    let (mut low, mut high) = (1.9, 13.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        match student_two_sided(middle, freedom) > 0.05 {
            true => low = middle,
            false => high = middle,
        }
    }
    (low + high) / 2.0
}

/// Complementary error function for non-negative values: series near 0, continued fraction otherwise.
fn complement_of_erf(x: f64) -> f64 {
    let scale = (-x * x).exp() / std::f64::consts::PI.sqrt();
    if x < 2.0 {
        let (mut term, mut sum) = (x, x);
        for n in 1..60 {
            term *= 2.0 * x * x / f64::from(2 * n + 1);
            sum += term;
        }
        return 1.0 - 2.0 * scale * sum;
    }
    let fraction = (1..120).rev().fold(x, |below, n| x + f64::from(n) / 2.0 / below);
    scale / fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(found: f64, expected: f64) {
        assert!((found - expected).abs() <= 1e-12 + expected * 1e-9, "{found} is not {expected}");
    }

    /// Expected values from scipy: `2 * norm.sf(z)`.
    #[test]
    fn normal_tails_match_scipy() {
        check(normal_two_sided(0.0), 1.0);
        check(normal_two_sided(1.0), 0.31731050786291415);
        check(normal_two_sided(-1.96), 0.04999579029644087);
        check(normal_two_sided(3.5), 0.00046525815807105003);
        check(normal_two_sided(8.0) * 1e15, 1.244192114854348);
    }

    /// Expected values from scipy: `2 * t.sf(t, freedom)` and `t.ppf(0.975, freedom)`.
    #[test]
    fn student_tails_match_scipy() {
        check(student_two_sided(2.0, 1), 0.2951672353008665);
        check(student_two_sided(2.0, 2), 0.18350341907227397);
        check(student_two_sided(2.0, 3), 0.13932596855884305);
        check(student_two_sided(2.0, 4), 0.11611652351681556);
        check(student_two_sided(-3.0, 11), 0.01207983947192137);
        check(student_two_sided(4.0, 150), 9.915585939286211e-05);
        check(student_95(1), 12.706204736174694);
        check(student_95(4), 2.7764451051977934);
        check(student_95(30), 2.0422724563012378);
        check(student_95(1000), 1.959963984540054);
    }
}
