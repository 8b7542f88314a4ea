// The Vulkan loader's functions, looked up at run time: the program starts where there is no Vulkan at all.
#define VOLK_IMPLEMENTATION
#include <volk.h>
