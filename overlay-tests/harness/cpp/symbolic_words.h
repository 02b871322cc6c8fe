// In the laid tree's text these words mean symbolic numbers. Included after
// everything that needs the real ones.
#define float sym_float
#define uint8_t overlay::symbolic::U8
#define uint16_t overlay::symbolic::U16
#define uint32_t overlay::symbolic::U32
#define sizeof(type) overlay::symbolic::kSizeOf<type>
