// Samples images on a Vulkan device and prints what came of it, for crates/sim/tests/ir3_texture.rs.
//
//   g++ -O1 -o oracle oracle.cpp -lvulkan
//   GALLIVM_PERF=no_brilinear,no_rho_approx,no_quad_lod,no_aos_sampling,no_filter_hacks ./oracle > texture.txt
//
// It takes the first CPU device, which is lavapipe, and needs glslangValidator. A line is a case: an image, a sampler, an
// operation, a seed, and four words for each sample. Texels and coordinates follow from the seed; the test makes the same.

#include <vulkan/vulkan.h>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

static const int SAMPLES = 12;
static const int INPUTS = 16;

#define CHECK(call) do { VkResult r_ = (call); if (r_ != VK_SUCCESS) { fprintf(stderr, "%s: %d (line %d)\n", #call, r_, __LINE__); exit(1); } } while (0)

struct Lcg {
    uint64_t state;
    uint32_t next() { state = state * 6364136223846793005ull + 1442695040888963407ull; return uint32_t(state >> 33); }
    uint32_t below(uint32_t n) { return next() % n; }
};

enum Content { BYTES, HALF, FLOAT, SMALL, UNIT, BC7_BLOCK };

struct FormatRow { const char *name; VkFormat format; uint32_t bytes, block; Content content; char numeric; bool depth; };

static const FormatRow FORMATS[] = {
    {"R8G8B8A8_UNORM", VK_FORMAT_R8G8B8A8_UNORM, 4, 1, BYTES, 'f', false},
    {"R32G32B32A32_FLOAT", VK_FORMAT_R32G32B32A32_SFLOAT, 16, 1, FLOAT, 'f', false},
    {"R8_UNORM", VK_FORMAT_R8_UNORM, 1, 1, BYTES, 'f', false},
    {"R8G8_UNORM", VK_FORMAT_R8G8_UNORM, 2, 1, BYTES, 'f', false},
    {"R8G8B8A8_SNORM", VK_FORMAT_R8G8B8A8_SNORM, 4, 1, BYTES, 'f', false},
    {"R16G16B16A16_FLOAT", VK_FORMAT_R16G16B16A16_SFLOAT, 8, 1, HALF, 'f', false},
    {"R16_UNORM", VK_FORMAT_R16_UNORM, 2, 1, BYTES, 'f', false},
    {"R32_FLOAT", VK_FORMAT_R32_SFLOAT, 4, 1, FLOAT, 'f', false},
    {"R8G8B8A8_SRGB", VK_FORMAT_R8G8B8A8_SRGB, 4, 1, BYTES, 'f', false},
    {"B8G8R8A8_UNORM", VK_FORMAT_B8G8R8A8_UNORM, 4, 1, BYTES, 'f', false},
    {"B5G6R5_UNORM", VK_FORMAT_R5G6B5_UNORM_PACK16, 2, 1, BYTES, 'f', false},
    {"R10G10B10A2_UNORM", VK_FORMAT_A2B10G10R10_UNORM_PACK32, 4, 1, BYTES, 'f', false},
    {"R11G11B10_FLOAT", VK_FORMAT_B10G11R11_UFLOAT_PACK32, 4, 1, SMALL, 'f', false},
    {"R9G9B9E5_FLOAT", VK_FORMAT_E5B9G9R9_UFLOAT_PACK32, 4, 1, BYTES, 'f', false},
    {"R8G8B8A8_UINT", VK_FORMAT_R8G8B8A8_UINT, 4, 1, BYTES, 'u', false},
    {"R32G32_UINT", VK_FORMAT_R32G32_UINT, 8, 1, BYTES, 'u', false},
    {"R16G16_SINT", VK_FORMAT_R16G16_SINT, 4, 1, BYTES, 'i', false},
    {"DXT1_RGBA", VK_FORMAT_BC1_RGBA_UNORM_BLOCK, 8, 4, BYTES, 'f', false},
    {"DXT3_RGBA", VK_FORMAT_BC2_UNORM_BLOCK, 16, 4, BYTES, 'f', false},
    {"DXT5_RGBA", VK_FORMAT_BC3_UNORM_BLOCK, 16, 4, BYTES, 'f', false},
    {"RGTC1_UNORM", VK_FORMAT_BC4_UNORM_BLOCK, 8, 4, BYTES, 'f', false},
    {"RGTC2_UNORM", VK_FORMAT_BC5_UNORM_BLOCK, 16, 4, BYTES, 'f', false},
    {"BPTC_RGBA_UNORM", VK_FORMAT_BC7_UNORM_BLOCK, 16, 4, BC7_BLOCK, 'f', false},
    {"ETC2_RGB8", VK_FORMAT_ETC2_R8G8B8_UNORM_BLOCK, 8, 4, BYTES, 'f', false},
    {"ETC2_RGBA8", VK_FORMAT_ETC2_R8G8B8A8_UNORM_BLOCK, 16, 4, BYTES, 'f', false},
    {"ETC2_R11_UNORM", VK_FORMAT_EAC_R11_UNORM_BLOCK, 8, 4, BYTES, 'f', false},
    {"Z16_UNORM", VK_FORMAT_D16_UNORM, 2, 1, BYTES, 'f', true},
    {"Z32_FLOAT", VK_FORMAT_D32_SFLOAT, 4, 1, UNIT, 'f', true},
};

enum Kind { D1, A1, D2, A2, D3, CUBE, CUBES };
static const char *KINDS[] = {"1d", "1da", "2d", "2da", "3d", "cube", "cubes"};

// l: explicit level, g: gradients, f: fetch, t: gather, c: comparison, d: gather with comparison, o: offsets, p: projection
struct Case {
    const FormatRow *format;
    Kind kind;
    uint32_t w, h, d, levels, layers;
    char op;
    uint32_t component;
    uint32_t mag, min, mip, wrap[3], border, aniso, compare, reduction, unnormalized;
    float bias, least, most;
    uint32_t swizzle[4];
    uint64_t seed;
};

static uint32_t minify(uint32_t n, uint32_t level) { n >>= level; return n ? n : 1; }
static bool is_array(Kind k) { return k == A1 || k == A2 || k == CUBES; }
static bool is_cube(Kind k) { return k == CUBE || k == CUBES; }
static int axes(Kind k) { return k == D1 || k == A1 ? 1 : k == D3 || is_cube(k) ? 3 : 2; }

static VkInstance instance;
static VkPhysicalDevice physical;
static VkDevice device;
static VkQueue queue;
static VkCommandPool pool;
static VkDescriptorSetLayout set_layout;
static VkPipelineLayout pipeline_layout;
static VkDescriptorPool descriptor_pool;

static uint32_t memory_type(uint32_t bits) {
    VkPhysicalDeviceMemoryProperties properties;
    vkGetPhysicalDeviceMemoryProperties(physical, &properties);
    for (uint32_t i = 0; i < properties.memoryTypeCount; i++)
        if ((bits >> i & 1) && (properties.memoryTypes[i].propertyFlags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT)) return i;
    exit(1);
}

static void open_device() {
    VkApplicationInfo app = {VK_STRUCTURE_TYPE_APPLICATION_INFO};
    app.apiVersion = VK_API_VERSION_1_2;
    VkInstanceCreateInfo info = {VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
    info.pApplicationInfo = &app;
    CHECK(vkCreateInstance(&info, nullptr, &instance));
    uint32_t count = 0;
    vkEnumeratePhysicalDevices(instance, &count, nullptr);
    std::vector<VkPhysicalDevice> devices(count);
    vkEnumeratePhysicalDevices(instance, &count, devices.data());
    for (auto each : devices) {
        VkPhysicalDeviceProperties properties;
        vkGetPhysicalDeviceProperties(each, &properties);
        if (properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU) {
            physical = each;
            printf("# %s\n", properties.deviceName);
        }
    }
    if (!physical) { fprintf(stderr, "no CPU device\n"); exit(1); }
    VkPhysicalDeviceVulkan12Features has12 = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
    VkPhysicalDeviceFeatures2 features = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
    features.pNext = &has12;
    vkGetPhysicalDeviceFeatures2(physical, &features);
    float priority = 1;
    VkDeviceQueueCreateInfo queue_info = {VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
    queue_info.queueCount = 1;
    queue_info.pQueuePriorities = &priority;
    VkDeviceCreateInfo device_info = {VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
    device_info.pNext = &features;
    device_info.queueCreateInfoCount = 1;
    device_info.pQueueCreateInfos = &queue_info;
    CHECK(vkCreateDevice(physical, &device_info, nullptr, &device));
    vkGetDeviceQueue(device, 0, 0, &queue);
    VkCommandPoolCreateInfo pool_info = {VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
    pool_info.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
    CHECK(vkCreateCommandPool(device, &pool_info, nullptr, &pool));
    VkDescriptorSetLayoutBinding bindings[3] = {};
    for (int i = 0; i < 3; i++) {
        bindings[i].binding = i;
        bindings[i].descriptorType = i ? VK_DESCRIPTOR_TYPE_STORAGE_BUFFER : VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER;
        bindings[i].descriptorCount = 1;
        bindings[i].stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
    }
    VkDescriptorSetLayoutCreateInfo set_info = {VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
    set_info.bindingCount = 3;
    set_info.pBindings = bindings;
    CHECK(vkCreateDescriptorSetLayout(device, &set_info, nullptr, &set_layout));
    VkPipelineLayoutCreateInfo layout_info = {VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
    layout_info.setLayoutCount = 1;
    layout_info.pSetLayouts = &set_layout;
    CHECK(vkCreatePipelineLayout(device, &layout_info, nullptr, &pipeline_layout));
    VkDescriptorPoolSize sizes[2] = {{VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER, 1}, {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 2}};
    VkDescriptorPoolCreateInfo dp = {VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
    dp.maxSets = 1;
    dp.poolSizeCount = 2;
    dp.pPoolSizes = sizes;
    CHECK(vkCreateDescriptorPool(device, &dp, nullptr, &descriptor_pool));
}

static VkBuffer buffer(VkDeviceSize size, VkBufferUsageFlags usage, VkDeviceMemory *memory, void **map) {
    VkBufferCreateInfo info = {VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
    info.size = size;
    info.usage = usage;
    VkBuffer made;
    CHECK(vkCreateBuffer(device, &info, nullptr, &made));
    VkMemoryRequirements needs;
    vkGetBufferMemoryRequirements(device, made, &needs);
    VkMemoryAllocateInfo alloc = {VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
    alloc.allocationSize = needs.size;
    alloc.memoryTypeIndex = memory_type(needs.memoryTypeBits);
    CHECK(vkAllocateMemory(device, &alloc, nullptr, memory));
    CHECK(vkBindBufferMemory(device, made, *memory, 0));
    CHECK(vkMapMemory(device, *memory, 0, VK_WHOLE_SIZE, 0, map));
    return made;
}

// The texels of a case: levels, then layers, then slices, rows and columns of blocks.
static std::vector<uint8_t> texels(const Case &c, std::vector<VkBufferImageCopy> &copies) {
    Lcg random = {c.seed};
    std::vector<uint8_t> bytes;
    uint32_t layers = c.layers * (is_cube(c.kind) ? 6 : 1);
    for (uint32_t level = 0; level < c.levels; level++) {
        uint32_t w = minify(c.w, level), h = minify(c.h, level), d = minify(c.d, level);
        VkBufferImageCopy copy = {};
        while (bytes.size() % 16) bytes.push_back(0);
        copy.bufferOffset = bytes.size();
        copy.imageSubresource = {VkImageAspectFlags(c.format->depth ? VK_IMAGE_ASPECT_DEPTH_BIT : VK_IMAGE_ASPECT_COLOR_BIT), level, 0, layers};
        copy.imageExtent = {w, h, d};
        copies.push_back(copy);
        uint32_t blocks = (w + c.format->block - 1) / c.format->block * ((h + c.format->block - 1) / c.format->block) * d * layers;
        for (uint32_t i = 0; i < blocks; i++) {
            std::vector<uint8_t> block(c.format->bytes);
            switch (c.format->content) {
            case BYTES: for (auto &byte : block) byte = random.next(); break;
            case BC7_BLOCK: for (auto &byte : block) byte = random.next(); block[0] |= 0x80; break;
            case HALF: for (size_t at = 0; at < block.size(); at += 2) {
                uint32_t r = random.next();
                uint16_t value = 0x3000 | (r & 0x0fff) | (r >> 12 & 1) << 15;
                memcpy(&block[at], &value, 2);
            } break;
            case FLOAT: for (size_t at = 0; at < block.size(); at += 4) {
                uint32_t r = random.next();
                uint32_t value = 0x3e000000 | (r & 0x01ffffff) | (r >> 25 & 1) << 31;
                memcpy(&block[at], &value, 4);
            } break;
            case SMALL: { uint32_t value = random.next() & 0x7fdffbff; memcpy(&block[0], &value, 4); } break;
            case UNIT: { float value = float(random.next() & 0xffff) / 65536.0f; memcpy(&block[0], &value, 4); } break;
            }
            bytes.insert(bytes.end(), block.begin(), block.end());
        }
    }
    return bytes;
}

// What each invocation reads: four coordinates, level, reference, gradients; the test makes the same.
static void inputs(const Case &c, float *out) {
    Lcg random = {c.seed ^ 0x5555};
    for (int i = 0; i < SAMPLES; i++, out += INPUTS) {
        memset(out, 0, INPUTS * 4);
        uint32_t fetched = random.below(c.levels);
        uint32_t size[3] = {c.w, c.h, c.d};
        int count = axes(c.kind);
        for (int axis = 0; axis < count; axis++) {
            if (c.op == 'f') { out[axis] = random.below(minify(size[axis], fetched)); continue; }
            if (is_cube(c.kind)) {
                static const double extra[3] = {0.0, 1.0 / 8192, 3.0 / 16384};
                out[axis] = float((double(random.below(2047)) * 2 + 1 - 2047) / 2048 + extra[axis]);
                continue;
            }
            int texel = c.unnormalized ? int(random.below(size[axis] + 4)) - 2 : int(random.below(5 * size[axis])) - 2 * int(size[axis]);
            int part = 2 * random.below(8) + 1;
            double place = double(texel * 16 + part) / 16;
            out[axis] = float(c.unnormalized ? place : place / size[axis]);
        }
        if (is_array(c.kind)) {
            uint32_t r = random.below(c.layers + 2);
            int part = int(random.below(3)) - 1;
            out[3] = c.op == 'f' ? float(r % c.layers) : float(int(r) - 1) + 0.25f * part;
        }
        out[4] = c.op == 'f' ? float(fetched) : float(2 * random.below(8 * (c.levels + 2)) + 1) / 16 - 1;
        out[5] = float(random.below(64)) / 64 + 1.0f / 128;
        out[6] = float(1 + random.below(16)) / 8 / float(c.w);
        out[10] = float(1 + random.below(16)) / 8 / float(c.h);
        out[12] = 0.5f + float(random.below(8)) / 4;
    }
}

static std::string shader(const Case &c) {
    bool shadow = c.op == 'c' || c.op == 'd';
    const char *dims[] = {"1D", "1DArray", "2D", "2DArray", "3D", "Cube", "CubeArray"};
    std::string prefix = c.format->numeric == 'f' ? "" : std::string(1, c.format->numeric);
    std::string result = prefix.empty() ? "vec4" : prefix + "vec4";
    std::string sampler = prefix + "sampler" + dims[c.kind] + (shadow ? "Shadow" : "");
    const char *parts[] = {"", "x", "xy", "xyz"};
    int n = axes(c.kind);
    std::string vector = n == 1 ? "p.x" : std::string("p.") + parts[n];
    std::string place = vector;
    auto vec = [](int size, const std::string &inner) { return size == 1 ? inner : "vec" + std::to_string(size) + "(" + inner + ")"; };
    int size = n + is_array(c.kind);
    if (is_array(c.kind)) place = vec(size, vector + ", p.w");
    std::string value;
    switch (c.op) {
    case 'l': value = "textureLod(s, " + place + ", q.x)"; break;
    case 'o': value = "textureLodOffset(s, " + place + ", q.x, " + (n == 1 ? "3" : n == 2 ? "ivec2(3, -2)" : "ivec3(3, -2, 1)") + ")"; break;
    case 'g': value = "textureGrad(s, " + place + ", " + vec(n, n == 1 ? "q.z" : n == 2 ? "q.z, 0" : "q.z, 0, 0") + ", " + vec(n, n == 1 ? "0" : n == 2 ? "0, r.z" : "0, r.z, 0") + ")"; break;
    case 'f': value = "texelFetch(s, " + (size == 1 ? "int(" + place + ")" : "i" + (place[0] == 'v' ? place : vec(size, place))) + ", int(q.x))"; break;
    case 't': value = "textureGather(s, " + place + ", " + std::to_string(c.component) + ")"; break;
    case 'd': value = "textureGather(s, " + place + ", q.y)"; break;
    case 'c':
        if (c.kind == A2) value = "vec4(textureGrad(s, vec4(p.xy, p.w, q.y), vec2(0), vec2(0)))";
        else if (c.kind == CUBE) value = "vec4(textureGrad(s, vec4(p.xyz, q.y), vec3(0), vec3(0)))";
        else value = "vec4(textureLod(s, vec3(p.xy, q.y), q.x))";
        break;
    case 'p': value = "textureProjLod(s, " + vec(n + 1, vector + " * t.x, t.x") + ", q.x)"; break;
    }
    return "#version 450\nlayout(local_size_x = " + std::to_string(SAMPLES) + ") in;\n"
        "layout(binding = 0) uniform " + sampler + " s;\n"
        "layout(std430, binding = 1) readonly buffer In { vec4 v[]; } i;\n"
        "layout(std430, binding = 2) writeonly buffer Out { " + result + " v[]; } o;\n"
        "void main() { uint n = gl_LocalInvocationIndex; vec4 p = i.v[4 * n], q = i.v[4 * n + 1], r = i.v[4 * n + 2], t = i.v[4 * n + 3];\n"
        "o.v[n] = " + value + "; }\n";
}

static VkPipeline pipeline(const std::string &source) {
    static std::map<std::string, VkPipeline> known;
    auto found = known.find(source);
    if (found != known.end()) return found->second;
    FILE *file = fopen("/tmp/oracle.comp", "w");
    fputs(source.c_str(), file);
    fclose(file);
    if (system("glslangValidator -V --target-env vulkan1.2 -o /tmp/oracle.spv /tmp/oracle.comp > /tmp/oracle.log 2>&1")) {
        fprintf(stderr, "%s", source.c_str());
        system("cat /tmp/oracle.log >&2");
        exit(1);
    }
    file = fopen("/tmp/oracle.spv", "rb");
    std::vector<uint32_t> code(1 << 16);
    size_t words = fread(code.data(), 4, code.size(), file);
    fclose(file);
    VkShaderModuleCreateInfo module_info = {VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
    module_info.codeSize = words * 4;
    module_info.pCode = code.data();
    VkShaderModule module;
    CHECK(vkCreateShaderModule(device, &module_info, nullptr, &module));
    VkComputePipelineCreateInfo info = {VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
    info.stage = {VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO, nullptr, 0, VK_SHADER_STAGE_COMPUTE_BIT, module, "main", nullptr};
    info.layout = pipeline_layout;
    VkPipeline made;
    CHECK(vkCreateComputePipelines(device, VK_NULL_HANDLE, 1, &info, nullptr, &made));
    return known[source] = made;
}

static void run(const Case &c) {
    VkFormatProperties properties;
    vkGetPhysicalDeviceFormatProperties(physical, c.format->format, &properties);
    if (!(properties.optimalTilingFeatures & VK_FORMAT_FEATURE_SAMPLED_IMAGE_BIT)) {
        fprintf(stderr, "%s cannot be sampled\n", c.format->name);
        return;
    }
    const VkImageType types[] = {VK_IMAGE_TYPE_1D, VK_IMAGE_TYPE_1D, VK_IMAGE_TYPE_2D, VK_IMAGE_TYPE_2D, VK_IMAGE_TYPE_3D, VK_IMAGE_TYPE_2D, VK_IMAGE_TYPE_2D};
    VkImageCreateInfo info = {VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO};
    info.flags = is_cube(c.kind) ? VK_IMAGE_CREATE_CUBE_COMPATIBLE_BIT : 0;
    info.imageType = types[c.kind];
    info.format = c.format->format;
    info.extent = {c.w, c.h, c.d};
    info.mipLevels = c.levels;
    info.arrayLayers = c.layers * (is_cube(c.kind) ? 6 : 1);
    info.samples = VK_SAMPLE_COUNT_1_BIT;
    info.tiling = VK_IMAGE_TILING_OPTIMAL;
    info.usage = VK_IMAGE_USAGE_SAMPLED_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT;
    VkImage image;
    CHECK(vkCreateImage(device, &info, nullptr, &image));
    VkMemoryRequirements needs;
    vkGetImageMemoryRequirements(device, image, &needs);
    VkMemoryAllocateInfo alloc = {VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
    alloc.allocationSize = needs.size;
    alloc.memoryTypeIndex = memory_type(needs.memoryTypeBits);
    VkDeviceMemory image_memory;
    CHECK(vkAllocateMemory(device, &alloc, nullptr, &image_memory));
    CHECK(vkBindImageMemory(device, image, image_memory, 0));

    VkImageAspectFlags aspect = c.format->depth ? VK_IMAGE_ASPECT_DEPTH_BIT : VK_IMAGE_ASPECT_COLOR_BIT;
    const VkComponentSwizzle swizzles[] = {VK_COMPONENT_SWIZZLE_R, VK_COMPONENT_SWIZZLE_G, VK_COMPONENT_SWIZZLE_B, VK_COMPONENT_SWIZZLE_A, VK_COMPONENT_SWIZZLE_ZERO, VK_COMPONENT_SWIZZLE_ONE};
    const VkImageViewType views[] = {VK_IMAGE_VIEW_TYPE_1D, VK_IMAGE_VIEW_TYPE_1D_ARRAY, VK_IMAGE_VIEW_TYPE_2D, VK_IMAGE_VIEW_TYPE_2D_ARRAY, VK_IMAGE_VIEW_TYPE_3D, VK_IMAGE_VIEW_TYPE_CUBE, VK_IMAGE_VIEW_TYPE_CUBE_ARRAY};
    VkImageViewCreateInfo view_info = {VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO};
    view_info.image = image;
    view_info.viewType = views[c.kind];
    view_info.format = c.format->format;
    view_info.components = {swizzles[c.swizzle[0]], swizzles[c.swizzle[1]], swizzles[c.swizzle[2]], swizzles[c.swizzle[3]]};
    view_info.subresourceRange = {aspect, 0, c.levels, 0, info.arrayLayers};
    VkImageView view;
    CHECK(vkCreateImageView(device, &view_info, nullptr, &view));

    // Wrap modes of Adreno: repeat, edge, mirrored repeat, border, mirrored edge.
    const VkSamplerAddressMode modes[] = {VK_SAMPLER_ADDRESS_MODE_REPEAT, VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_EDGE, VK_SAMPLER_ADDRESS_MODE_MIRRORED_REPEAT, VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_BORDER, VK_SAMPLER_ADDRESS_MODE_MIRROR_CLAMP_TO_EDGE};
    VkSamplerReductionModeCreateInfo reduction = {VK_STRUCTURE_TYPE_SAMPLER_REDUCTION_MODE_CREATE_INFO};
    reduction.reductionMode = VkSamplerReductionMode(c.reduction);
    VkSamplerCreateInfo sampler_info = {VK_STRUCTURE_TYPE_SAMPLER_CREATE_INFO};
    sampler_info.pNext = c.reduction ? &reduction : nullptr;
    sampler_info.magFilter = VkFilter(c.mag);
    sampler_info.minFilter = VkFilter(c.min);
    sampler_info.mipmapMode = VkSamplerMipmapMode(c.mip);
    sampler_info.addressModeU = modes[c.wrap[0]];
    sampler_info.addressModeV = modes[c.wrap[1]];
    sampler_info.addressModeW = modes[c.wrap[2]];
    sampler_info.mipLodBias = c.bias;
    sampler_info.compareEnable = c.op == 'c' || c.op == 'd';
    sampler_info.compareOp = VkCompareOp(c.compare);
    sampler_info.minLod = c.least;
    sampler_info.maxLod = c.most;
    sampler_info.borderColor = VkBorderColor(c.border);
    sampler_info.unnormalizedCoordinates = c.unnormalized;
    VkSampler sampler;
    CHECK(vkCreateSampler(device, &sampler_info, nullptr, &sampler));

    std::vector<VkBufferImageCopy> copies;
    std::vector<uint8_t> bytes = texels(c, copies);
    VkDeviceMemory memories[3];
    void *maps[3];
    VkBuffer staging = buffer(bytes.size(), VK_BUFFER_USAGE_TRANSFER_SRC_BIT, &memories[0], &maps[0]);
    VkBuffer in = buffer(SAMPLES * INPUTS * 4, VK_BUFFER_USAGE_STORAGE_BUFFER_BIT, &memories[1], &maps[1]);
    VkBuffer out = buffer(SAMPLES * 16, VK_BUFFER_USAGE_STORAGE_BUFFER_BIT, &memories[2], &maps[2]);
    memcpy(maps[0], bytes.data(), bytes.size());
    inputs(c, (float *)maps[1]);

    VkDescriptorSetAllocateInfo set_info = {VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
    set_info.descriptorPool = descriptor_pool;
    set_info.descriptorSetCount = 1;
    set_info.pSetLayouts = &set_layout;
    VkDescriptorSet set;
    CHECK(vkAllocateDescriptorSets(device, &set_info, &set));
    VkDescriptorImageInfo image_write = {sampler, view, VK_IMAGE_LAYOUT_GENERAL};
    VkDescriptorBufferInfo buffers[2] = {{in, 0, VK_WHOLE_SIZE}, {out, 0, VK_WHOLE_SIZE}};
    VkWriteDescriptorSet writes[3] = {};
    for (int i = 0; i < 3; i++) {
        writes[i].sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
        writes[i].dstSet = set;
        writes[i].dstBinding = i;
        writes[i].descriptorCount = 1;
        writes[i].descriptorType = i ? VK_DESCRIPTOR_TYPE_STORAGE_BUFFER : VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER;
        writes[i].pImageInfo = i ? nullptr : &image_write;
        writes[i].pBufferInfo = i ? &buffers[i - 1] : nullptr;
    }
    vkUpdateDescriptorSets(device, 3, writes, 0, nullptr);

    VkCommandBufferAllocateInfo command_info = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
    command_info.commandPool = pool;
    command_info.commandBufferCount = 1;
    VkCommandBuffer commands;
    CHECK(vkAllocateCommandBuffers(device, &command_info, &commands));
    VkCommandBufferBeginInfo begin = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    CHECK(vkBeginCommandBuffer(commands, &begin));
    VkImageMemoryBarrier barrier = {VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER};
    barrier.dstAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
    barrier.newLayout = VK_IMAGE_LAYOUT_GENERAL;
    barrier.image = image;
    barrier.subresourceRange = view_info.subresourceRange;
    vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, 0, 0, nullptr, 0, nullptr, 1, &barrier);
    vkCmdCopyBufferToImage(commands, staging, image, VK_IMAGE_LAYOUT_GENERAL, copies.size(), copies.data());
    barrier.srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
    barrier.dstAccessMask = VK_ACCESS_SHADER_READ_BIT;
    barrier.oldLayout = VK_IMAGE_LAYOUT_GENERAL;
    vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, 0, 0, nullptr, 0, nullptr, 1, &barrier);
    vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline(shader(c)));
    vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline_layout, 0, 1, &set, 0, nullptr);
    vkCmdDispatch(commands, 1, 1, 1);
    CHECK(vkEndCommandBuffer(commands));
    VkSubmitInfo submit = {VK_STRUCTURE_TYPE_SUBMIT_INFO};
    submit.commandBufferCount = 1;
    submit.pCommandBuffers = &commands;
    CHECK(vkQueueSubmit(queue, 1, &submit, VK_NULL_HANDLE));
    CHECK(vkQueueWaitIdle(queue));

    printf("%s %s %u %u %u %u %u %c%u ", c.format->name, KINDS[c.kind], c.w, c.h, c.d, c.levels, c.layers, c.op, c.component);
    printf("%u%u%u %u%u%u %u %u %u %u %g %g %g ", c.mag, c.min, c.mip, c.wrap[0], c.wrap[1], c.wrap[2], c.border, c.compare, c.reduction, c.unnormalized, c.bias, c.least, c.most);
    printf("%u%u%u%u %llu ", c.swizzle[0], c.swizzle[1], c.swizzle[2], c.swizzle[3], (unsigned long long)c.seed);
    for (int i = 0; i < SAMPLES * 4; i++) printf("%08x", ((uint32_t *)maps[2])[i]);
    printf("\n");

    vkFreeCommandBuffers(device, pool, 1, &commands);
    vkResetDescriptorPool(device, descriptor_pool, 0);
    vkDestroySampler(device, sampler, nullptr);
    vkDestroyImageView(device, view, nullptr);
    vkDestroyImage(device, image, nullptr);
    vkFreeMemory(device, image_memory, nullptr);
    VkBuffer all[3] = {staging, in, out};
    for (int i = 0; i < 3; i++) { vkDestroyBuffer(device, all[i], nullptr); vkFreeMemory(device, memories[i], nullptr); }
}

static Case plain(Lcg &random, const FormatRow *format, Kind kind, char op) {
    Case c = {};
    c.format = format;
    c.kind = kind;
    c.op = op;
    bool cube = is_cube(kind), one = kind == D1 || kind == A1;
    c.w = cube ? 8 + 8 * random.below(3) : 9 + random.below(30);
    c.h = cube ? c.w : one ? 1 : 5 + random.below(30);
    c.d = kind == D3 ? 2 + random.below(6) : 1;
    c.layers = is_array(kind) ? 2 + random.below(3) : 1;
    uint32_t full = 1;
    while ((c.w > c.h ? c.w : c.h) >> full) full++;
    c.levels = 1 + random.below(full < 5 ? full : 5);
    c.mag = c.min = op == 'f' || format->numeric != 'f' ? 0 : random.below(4) != 0;
    if (format->numeric == 'f' && random.below(4) == 0) c.min ^= 1;
    c.mip = random.below(2);
    // Integers are not filtered, between levels neither.
    if (format->numeric != 'f') c.mip = 0;
    for (auto &wrap : c.wrap) wrap = random.below(5);
    c.border = 2 * random.below(3) + (format->numeric != 'f');
    c.compare = random.below(8);
    c.component = op == 't' ? random.below(4) : 0;
    c.most = 15;
    uint32_t identity[4] = {0, 1, 2, 3};
    memcpy(c.swizzle, identity, sizeof identity);
    if (op != 'c' && op != 'd' && random.below(5) == 0) for (auto &source : c.swizzle) source = random.below(6);
    if (random.below(4) == 0) c.bias = (float(random.below(33)) - 16) / 8;
    if (random.below(4) == 0) { c.least = float(random.below(12)) / 4; c.most = c.least + float(random.below(8)) / 4; }
    if (op == 't' || op == 'd') { c.bias = 0; c.least = 0; c.most = 15; }
    c.seed = random.next();
    return c;
}

int main() {
    open_device();
    printf("# format kind w h d levels layers op+component mag,min,mip wraps border compare reduction unnormalized bias least most swizzle seed words\n");
    Lcg random = {16};
    const size_t formats = sizeof FORMATS / sizeof *FORMATS;
    // Every format by its texels and through a filter.
    for (size_t at = 0; at < formats; at++) {
        const FormatRow *format = &FORMATS[at];
        run(plain(random, format, D2, 'f'));
        run(plain(random, format, D2, 'l'));
        if (!format->depth) run(plain(random, format, A2, 'l'));
        if (format->depth) for (int n = 0; n < 8; n++) {
            Case c = plain(random, format, n % 4 == 3 ? CUBE : n % 4 == 2 ? A2 : D2, 'c');
            c.compare = n;
            run(c);
            c = plain(random, format, n % 2 ? A2 : D2, 'd');
            c.compare = n;
            run(c);
        }
    }
    // Every kind and operation with two formats.
    for (int round = 0; round < 10; round++) {
        for (int kind = 0; kind < 7; kind++) {
            const FormatRow *format = &FORMATS[(round + kind) % 2];
            run(plain(random, format, Kind(kind), 'l'));
            if (!is_cube(Kind(kind)) && round < 5) run(plain(random, format, Kind(kind), 'f'));
            if (kind >= D2 && kind != D3 && round < 6) run(plain(random, format, Kind(kind), 't'));
            if (!is_cube(Kind(kind)) && round < 4) run(plain(random, format, Kind(kind), 'o'));
            if ((kind == D2 || kind == D3 || kind == D1) && round < 3) run(plain(random, format, Kind(kind), 'p'));
            if (!is_cube(Kind(kind)) && round < 4) run(plain(random, format, Kind(kind), 'g'));
        }
    }
    // Texels instead of parts of the image; the least and the greatest of what a filter takes.
    for (int round = 0; round < 4; round++) {
        Case c = plain(random, &FORMATS[round % 2], D2, 'l');
        c.unnormalized = 1;
        c.levels = 1;
        c.min = c.mag;
        c.mip = 0;
        c.bias = c.least = c.most = 0;
        c.wrap[0] = 1 + 2 * random.below(2);
        c.wrap[1] = 1 + 2 * random.below(2);
        run(c);
        c = plain(random, &FORMATS[round % 2], round < 2 ? D2 : D3, 'l');
        c.mag = c.min = 1;
        c.reduction = 1 + round % 2;
        // This device mixes levels all the same.
        c.mip = 0;
        run(c);
    }
    return 0;
}
