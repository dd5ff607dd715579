// Says which sources this library was made of.
//
// NETRA_SEMANTICS is the hash that sim/netra_sim/semantics.py takes; only this file knows it, so
// that a change of any source compiles that source and this one.

extern "C" __attribute__((visibility("default"))) const char* netraSimSemantics() {
  return NETRA_SEMANTICS;
}
