#include "dpp.h"

namespace netra {

int dpp_source(const Dpp& d, int l, int lanes) {
  const int row = l & ~15, n = l & 15, k = d.arg;
  switch (d.ctrl) {
    case DppCtrl::quad_perm: return (l & ~3) | (k >> (2 * (l & 3)) & 3);
    case DppCtrl::row_shl: return n + k < 16 ? l + k : -1;
    case DppCtrl::row_shr: return n >= k ? l - k : -1;
    case DppCtrl::row_ror: return row + ((n - k) & 15);
    case DppCtrl::wave_shl: return l + 1 < lanes ? l + 1 : -1;
    case DppCtrl::wave_rol: return (l + 1) & (lanes - 1);
    case DppCtrl::wave_shr: return l - 1;
    case DppCtrl::wave_ror: return (l - 1) & (lanes - 1);
    case DppCtrl::row_mirror: return row + 15 - n;
    case DppCtrl::row_half_mirror: return (l & ~7) + 7 - (l & 7);
    case DppCtrl::row_bcast: return k == 15 ? (l >= 16 ? row - 1 : -1) : (l >= 32 ? 31 : -1);
    case DppCtrl::row_newbcast:
    case DppCtrl::row_share: return row + k;
    case DppCtrl::row_xmask: return row + (n ^ k);
    case DppCtrl::dpp8: return (l & ~7) | d.select[l & 7];
    case DppCtrl::none: break;
  }
  return l;
}

}  // namespace netra
