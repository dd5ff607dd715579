#define fabs __builtin_fabs
#define fabsf __builtin_fabsf
