//! Names of the predefined registers.

use crate::ir::Special;

/// A register of one axis.
type OfAxis = fn(u8) -> Special;

/// Registers with components `.x`, `.y`, `.z`.
const WITH_AXIS: [(&str, OfAxis); 8] = [
    ("%tid", Special::Tid),
    ("%ntid", Special::Ntid),
    ("%ctaid", Special::Ctaid),
    ("%nctaid", Special::Nctaid),
    ("%clusterid", Special::ClusterId),
    ("%nclusterid", Special::NClusterId),
    ("%cluster_ctaid", Special::ClusterCtaId),
    ("%cluster_nctaid", Special::ClusterNCtaId),
];

const PLAIN: [(&str, Special); 22] = [
    ("%laneid", Special::LaneId),
    ("%warpid", Special::WarpId),
    ("%nwarpid", Special::NWarpId),
    ("%smid", Special::SmId),
    ("%nsmid", Special::NSmId),
    ("%gridid", Special::GridId),
    ("%lanemask_eq", Special::LaneMaskEq),
    ("%lanemask_lt", Special::LaneMaskLt),
    ("%lanemask_le", Special::LaneMaskLe),
    ("%lanemask_gt", Special::LaneMaskGt),
    ("%lanemask_ge", Special::LaneMaskGe),
    ("%clock", Special::Clock),
    ("%clock_hi", Special::ClockHi),
    ("%clock64", Special::Clock64),
    ("%globaltimer", Special::GlobalTimer),
    ("%globaltimer_lo", Special::GlobalTimerLo),
    ("%globaltimer_hi", Special::GlobalTimerHi),
    ("%cluster_ctarank", Special::ClusterCtaRank),
    ("%cluster_nctarank", Special::ClusterNCtaRank),
    ("%is_explicit_cluster", Special::IsExplicitCluster),
    ("%total_smem_size", Special::TotalSmemSize),
    ("%dynamic_smem_size", Special::DynamicSmemSize),
];

const AXES: [&str; 3] = ["x", "y", "z"];

/// A register without components.
pub(super) fn plain(name: &str) -> Option<Special> {
    PLAIN.iter().find(|(known, _)| *known == name).map(|&(_, special)| special)
}

/// A register of one axis; the outer `None` when the name has no axes.
pub(super) fn with_axis(name: &str, axis: Option<&str>) -> Option<Option<Special>> {
    let (_, make) = WITH_AXIS.iter().find(|(known, _)| *known == name)?;
    let axis = AXES.iter().zip(0..).find(|(known, _)| axis == Some(**known));
    Some(axis.map(|(_, number)| make(number)))
}

/// The name of a predefined register.
pub(super) fn name(special: Special) -> String {
    if let Some((name, _)) = PLAIN.iter().find(|&&(_, known)| known == special) {
        return (*name).to_owned();
    }
    let axes = WITH_AXIS.iter().flat_map(|(name, make)| {
        AXES.iter().zip(0..).map(move |(axis, number)| (format!("{name}.{axis}"), make(number)))
    });
    axes.filter(|&(_, known)| known == special).map(|(name, _)| name).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_its_own_inverse() {
        for (known, special) in PLAIN {
            assert_eq!(plain(known), Some(special));
            assert_eq!(name(special), known);
        }
        for (known, make) in WITH_AXIS {
            for (axis, number) in AXES.iter().zip(0..) {
                assert_eq!(with_axis(known, Some(axis)), Some(Some(make(number))));
                assert_eq!(name(make(number)), format!("{known}.{axis}"));
            }
            assert_eq!(with_axis(known, Some("w")), Some(None));
        }
    }
}
