#pragma once

#define TAAS_VERSION_MAJOR 0
#define TAAS_VERSION_MINOR 1
#define TAAS_VERSION_PATCH 0
#define TAAS_VERSION "0.1.0"
