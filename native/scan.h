/* What the parts of a scan share. */
#ifndef MPHF_SCAN_H
#define MPHF_SCAN_H

#include "native.h"
#include "scan_filter.h"

struct mphf_scan_filter {
    scan_tables tables;
};

#endif
