//! Both descriptions of BBR version 3, with the defaults of their schemes.

use crate::parts::bbr::BbrProfile;
use crate::schemes::{bbr_draft, bbr3};
use narrows_units::Params;

/// The published code's.
pub(crate) fn code() -> BbrProfile {
    BbrProfile::code(&Params::resolve(bbr3::SCHEME.params, []).unwrap())
}

/// The draft's.
pub(crate) fn draft() -> BbrProfile {
    BbrProfile::draft(&Params::resolve(bbr_draft::SCHEME.params, []).unwrap())
}
