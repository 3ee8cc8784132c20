#include "proc/machine/gpus.hpp"

#include <filesystem>

#include "catch.hpp"
#include "proc/processes.hpp"

namespace gpus_test {

using namespace taas;

namespace {

constexpr int kVga = 0x030000, kController = 0x030200, kDisplay = 0x038000, kAccelerator = 0x120000,
              kNetwork = 0x020000;

}  // namespace

TEST_CASE("CUDA_VISIBLE_DEVICES leaves as many GPUs as CUDA would see") {
  CHECK(count_visible_gpus(std::nullopt, 8) == 8);
  CHECK(count_visible_gpus(std::nullopt, 0) == 0);
  CHECK(count_visible_gpus("", 8) == 0);
  CHECK(count_visible_gpus("-1", 8) == 0);
  CHECK(count_visible_gpus("3", 8) == 1);
  CHECK(count_visible_gpus("0,1,2", 8) == 3);
  CHECK(count_visible_gpus("0, 2", 8) == 2);
  CHECK(count_visible_gpus("0,1,-1,2", 8) == 2);
  CHECK(count_visible_gpus("0,9,1", 8) == 1);
  CHECK(count_visible_gpus("NoDevFiles", 8) == 0);
  CHECK(count_visible_gpus("GPU-8932f937-d72c,GPU-3a23", 8) == 2);
  CHECK(count_visible_gpus("MIG-54f2f8a5-33b2,MIG-9f1c", 1) == 2);
  CHECK(count_visible_gpus("0,1", 0) == 0);
}

TEST_CASE("CUDA_VISIBLE_DEVICES is read as CUDA reads it") {
  CHECK(count_visible_gpus("0,0", 8) == 0);
  CHECK(count_visible_gpus("1,0,1", 8) == 0);
  CHECK(count_visible_gpus("0,00", 8) == 0);
  CHECK(count_visible_gpus("0,9,0", 8) == 1);
  CHECK(count_visible_gpus("GPU-1a,GPU-1a", 8) == 0);
  CHECK(count_visible_gpus("1gpu2,2ampere", 8) == 2);
  CHECK(count_visible_gpus("0,GPU-8932f937", 8) == 1);
  CHECK(count_visible_gpus("GPU-8932f937,0", 8) == 1);
  CHECK(count_visible_gpus("MIG-54f2f8a5,GPU-8932f937", 8) == 1);
  CHECK(count_visible_gpus(" MIG-54f2f8a5, MIG-9f1c", 8) == 2);
}

TEST_CASE("GPUs that are cut into slices are those whose capabilities have some") {
  const test::TemporaryFolder folder;
  const auto make = [&](const char* path) { std::filesystem::create_directories(folder.path() + "/" + path); };
  CHECK(count_sliced_gpus(folder.path() + "/none", {}) == 0);
  make("mig");
  make("gpu0/mig");
  CHECK(count_sliced_gpus(folder.path(), {}) == 0);
  make("gpu1/mig/gi1/ci0");
  make("gpu1/mig/gi2/ci0");
  make("gpu2/mig/gi7/ci0");
  CHECK(count_sliced_gpus(folder.path(), {}) == 2);
  CHECK(count_sliced_gpus(folder.path(), {0, 2}) == 1);
}

TEST_CASE("hiding all GPUs hides all GPUs") {
  auto hidden = find_gpus({{"CUDA_VISIBLE_DEVICES", ""}});
  CHECK(hidden.visible == 0);
  CHECK(hidden.problem.empty());
  CHECK(hidden.uncounted.empty());
}

TEST_CASE("NVIDIA's GPUs are told from its other devices, and from those of virtual machines") {
  CHECK(is_nvidia_gpu({"0000:17:00.0", 0x10de, kController, 0x2330, ""}));
  CHECK(is_nvidia_gpu({"0000:01:00.0", 0x10de, kVga, 0x2204, "nouveau"}));
  CHECK_FALSE(is_nvidia_gpu({"0000:17:00.0", 0x10de, kController, 0x2330, "vfio-pci"}));
  CHECK_FALSE(is_nvidia_gpu({"0000:05:00.0", 0x10de, 0x068000, 0x22a3, "nvidia-nvswitch"}));
  CHECK_FALSE(is_nvidia_gpu({"0000:01:00.1", 0x10de, 0x040300, 0x1aef, "snd_hda_intel"}));
  CHECK_FALSE(is_nvidia_gpu({"0000:17:00.0", 0x1002, kController, 0x2330, ""}));
}

TEST_CASE("accelerators of other makers are named, and their other devices are not") {
  auto name = [](std::vector<PciDevice> devices) { return name_other_accelerators(devices); };
  CHECK(name({}).empty());
  CHECK(name({{"0000:17:00.0", 0x10de, kController, 0x2330, ""}}).empty());
  CHECK(name({{"0000:03:00.0", 0x1002, kDisplay, 0x740c, "amdgpu"}}) == "1 AMD GPU");
  CHECK(name({{"0000:05:00.0", 0x1002, kAccelerator, 0x74a1, ""},
              {"0000:15:00.0", 0x1002, kAccelerator, 0x74a1, ""}}) == "2 AMD GPUs");
  CHECK(name({{"0000:03:00.1", 0x1002, 0x040300, 0xab28, ""}}).empty());
  CHECK(name({{"0000:3a:00.0", 0x8086, kDisplay, 0x0bd5, "i915"}}) == "1 Intel GPU");
  CHECK(name({{"0000:00:02.0", 0x8086, kVga, 0x9a49, "i915"}, {"0000:04:00.0", 0x8086, kNetwork, 0x1592, ""}}).empty());
  CHECK(name({{"0000:33:00.0", 0x1da3, kAccelerator, 0x1020, "habanalabs"}}) == "1 Gaudi accelerator");
  CHECK(name({{"0000:c1:00.0", 0x19e5, kAccelerator, 0xd802, ""}, {"0000:02:00.0", 0x19e5, kVga, 0x1711, ""}}) ==
        "1 Ascend NPU");
  CHECK(name({{"0000:00:05.0", 0x1ae0, 0xff0000, 0x0063, ""}, {"0000:00:03.0", 0x1ae0, kNetwork, 0x0042, ""}}) ==
        "1 TPU chip");
  CHECK(name({{"0000:00:1e.0", 0x1d0f, 0x088000, 0x7164, ""}, {"0000:00:05.0", 0x1d0f, kNetwork, 0xec20, ""}}) ==
        "1 AWS Neuron device");
  CHECK(name({{"0000:33:00.0", 0x1da3, kAccelerator, 0x1020, ""}, {"0000:03:00.0", 0x1002, kVga, 0x744c, ""}}) ==
        "1 AMD GPU, 1 Gaudi accelerator");
}

TEST_CASE("the variable by which a process sees some of the accelerators is its maker's") {
  auto variable = [](std::vector<PciDevice> devices) { return variable_of_accelerators(devices); };
  const PciDevice amd{"0000:03:00.0", 0x1002, kDisplay, 0x740c, ""},
      intel{"0000:3a:00.0", 0x8086, kDisplay, 0x0bd5, ""}, gaudi{"0000:33:00.0", 0x1da3, kAccelerator, 0x1020, ""},
      ascend{"0000:c1:00.0", 0x19e5, kAccelerator, 0xd802, ""}, tpu{"0000:00:05.0", 0x1ae0, 0xff0000, 0x0063, ""};
  CHECK(variable({amd, amd}) == "HIP_VISIBLE_DEVICES");
  CHECK(variable({intel}) == "ZE_AFFINITY_MASK");
  CHECK(variable({gaudi}) == "HABANA_VISIBLE_MODULES");
  CHECK(variable({ascend}) == "ASCEND_RT_VISIBLE_DEVICES");
  CHECK(variable({tpu}).empty());
  CHECK(variable({amd, gaudi}).empty());
  CHECK(variable({}).empty());
}

TEST_CASE("the driver's version is read from what it says of itself") {
  CHECK(version_of_driver("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19 18:56:32 UTC 2023\n"
                          "GCC version:  gcc version 12.2.0\n") == "535.129.03");
  CHECK(version_of_driver("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.14  Release Build") ==
        "550.54.14");
  CHECK(version_of_driver("").empty());
  CHECK(version_of_driver("GCC").empty());
}

}  // namespace gpus_test
