// The Vulkan device. Operations are written as commands into the stream (lane.h) with the addresses of their
// buffers as push constants; what changes from step to step (tokens, positions, pages) lies in the step
// buffer, so that the commands of a single-token step are the same each time and are recorded once.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "backend/device.h"
#include "backend/vulkan/context.h"
#include "backend/vulkan/lane.h"
#include "backend/vulkan/pipelines.h"
#include "backend/vulkan/plan.h"
#include "backend/vulkan/points.h"
#include "backend/vulkan/readback.h"
#include "backend/vulkan/staging.h"
#include "backend/vulkan/vulkan_device.h"

namespace spillway::vulkan {

class VulkanDevice final : public backend::Device {
 public:
  static Result<std::unique_ptr<backend::Device>> open(uint32_t index, const VulkanOptions& options);
  ~VulkanDevice() override;

  const backend::DeviceInfo& info() const override { return context_->physical().info; }
  backend::DeviceBytes bytes(const backend::DeviceSpec& spec) const override { return Plan(spec).bytes(); }
  Result<void> prepare(const backend::DeviceSpec& spec) override;
  uint64_t pin(std::span<const std::byte> range, std::string* why_not) override;
  Result<void> upload(backend::WeightId id, const backend::Matrix& from) override;

  void submit() override;
  backend::Point mark() override;
  void stream_wait(backend::Point link_point) override;
  bool reached(backend::Point point) override;
  Result<void> wait(backend::Point point) override;
  backend::Interval interval(backend::Point point) override;
  backend::Point copy_expert(uint32_t pool, uint32_t slot, const backend::ExpertMatrices& from,
                             backend::Point after) override;

  void set_slot(uint32_t layer, uint32_t expert, uint32_t slot) override;
  void route(backend::BufferId x, const backend::MoeSpec& spec, ForHost for_host) override;
  backend::Routed routed() override;
  std::span<const uint32_t> chosen(uint32_t layer) override;
  void experts_in_table(backend::BufferId x, const backend::MoeSpec& spec) override;
  void experts_in_slots(backend::BufferId x, const backend::MoeSpec& spec,
                        std::span<const backend::ExpertSlot> experts) override;
  void take_outputs(const backend::MoeSpec& spec, std::span<const uint32_t> pairs,
                    const float* rows) override;
  void combine(const backend::MoeSpec& spec, backend::BufferId out) override;

  void copy_kv_page(uint32_t from, uint32_t to) override;
  void write_buffer(backend::BufferId id, const float* from) override;
  void read_buffer(backend::BufferId id, float* to) override;

  void begin(const backend::Step& step) override;
  void embed(backend::WeightId table, backend::BufferId out) override;
  void rms_norm(backend::BufferId x, uint32_t width, backend::WeightId weight, float epsilon,
                backend::BufferId y) override;
  void head_norm(backend::BufferId x, uint32_t heads, uint32_t head_length, backend::WeightId weight,
                 float epsilon) override;
  void linear(backend::BufferId x, std::span<const backend::Linear> targets) override;
  void rope(backend::BufferId x, const backend::RopeSpec& spec) override;
  void store_kv(backend::BufferId key, backend::BufferId value, const backend::AttentionSpec& spec) override;
  void attention(backend::BufferId q, const backend::AttentionSpec& spec, backend::BufferId out) override;
  void silu_mul(backend::BufferId gate, backend::BufferId up, uint32_t width) override;
  void add(backend::BufferId y, backend::BufferId x, uint32_t width) override;
  void add_gated(backend::BufferId y, backend::BufferId x, backend::BufferId gate, uint32_t width) override;
  void logits(backend::BufferId x, std::span<const uint32_t> rows, backend::WeightId norm, float epsilon,
              backend::WeightId output, float* out, size_t out_stride) override;
  Result<void> finish() override;

 private:
  enum class Before : uint8_t {
    kBarrier,
    kNothing
  };  // kNothing: the operation before writes nothing of this one's

  // Rows of float32 on the device.
  struct Rows {
    VkDeviceAddress address = 0;
    uint32_t stride = 0;
  };
  // Activations in every form that was made.
  struct Inputs {
    Rows f32;
    const std::array<QuantizedPieces, kForms>* forms = nullptr;
  };
  struct Product {
    TensorType type = TensorType::kF32;
    uint32_t rows = 0, cols = 0;
    uint32_t column_stride = 16;
    VkDeviceAddress weights = 0;
    Inputs x;
    Rows to;
    VkDeviceAddress bias = 0;
    uint32_t tokens = 0;
    // Of a product by tiles (shaders/group.comp).
    bool tiled = false;
    uint32_t pair_divisor = 1;
    uint32_t weight_word = 0;
    uint32_t most_tiles = 0;
    uint32_t tile = 1;
  };
  // A range of host memory that the device reads directly.
  struct Pinned {
    std::span<const std::byte> memory;
    Buffer buffer;
  };

  explicit VulkanDevice(std::unique_ptr<Context> context, const VulkanOptions& options);
  Result<void> create();
  Result<void> allocate(const backend::DeviceSpec& spec);
  Result<void> fill_tables();
  Result<void> write_blocking(const Range& to, std::span<const std::byte> bytes);
  uint64_t staging_bytes() const;
  uint64_t readback_bytes() const;

  // Keeps the first error; the device is lost from then on.
  void lose(const Error& error) {
    if (!lost_) lost_ = error;
  }
  bool keep(const Result<void>& result) {
    if (!result) lose(result.error());
    return result.has_value();
  }
  Result<void> state() const {
    if (lost_) return std::unexpected(*lost_);
    return {};
  }

  // Hands over everything in the order in which it was sealed.
  Result<void> flush();
  // Ends the lane's open batch; flush() submits it.
  Result<void> seal(Lane& lane);

  CommandList& stream_list(Lane::Keep keep) {
    stream_points_.begin_work();
    return stream_.list(keep);
  }
  template <class Push>
  void run(std::string_view shader, std::vector<uint32_t> constants, Groups groups, const Push& push,
           Before before);

  Range piece(uint32_t scratch_piece) const { return plan_->scratch.range(scratch_piece); }
  VkDeviceAddress address(uint32_t scratch_piece) const { return piece(scratch_piece).address; }
  Rows buffer(backend::BufferId id) const {
    return {address(plan_->buffer[id]), spec_.sizes.buffer_widths[id]};
  }
  VkDeviceAddress weight_address(backend::WeightId id) const;  // 0 for kNoWeight
  VkDeviceAddress step_words(uint32_t part) const {  // 0 tokens, 1 positions, 2 first pages, 3 pages
    return address(plan_->step) + uint64_t{part} * plan_->max_rows * 4;
  }

  static std::optional<QuantizedForm> form_of(TensorType type);
  // Makes the forms of `rows` rows of x that products of these types want.
  void quantize(Rows x, uint32_t rows, uint32_t cols, std::initializer_list<TensorType> types,
                const std::array<QuantizedPieces, kForms>& to, Before before);
  void quantize_form(QuantizedForm form, Rows x, uint32_t rows, uint32_t cols, const QuantizedPieces& to,
                     Before before);
  void product(const Product& product, Before before);
  void norm(Rows x, Rows y, uint32_t rows, uint32_t heads, uint32_t n, backend::WeightId weight,
            float epsilon);
  void elementwise(uint32_t operation, Rows y, Rows x, Rows gate, uint32_t rows, uint32_t width);
  void run_experts(backend::BufferId x, const backend::MoeSpec& spec, VkDeviceAddress slots);
  uint32_t pairs(const backend::MoeSpec& spec) const { return rows_ * spec.routing.n_used; }

  // Host memory as a source of copies: where it is pinned, else copied (and rearranged) into staging.
  void copy_matrix(Lane& lane, Points& points, Staging& staging, const backend::Matrix& from,
                   const Range& to);
  bool copy_pinned(CommandList& list, std::span<const std::byte> from, const Range& to);

  std::unique_ptr<Context> context_;
  const VulkanOptions options_;
  Pipelines pipelines_;
  Lane stream_, link_;
  std::deque<Lane*> sealed_;  // lanes whose next batch waits to be handed over
  Points stream_points_, link_points_;
  Staging stream_staging_, link_staging_;
  Readback readback_;
  Buffer routed_;               // ids (max_pairs), then x (max_rows, hidden)
  Buffer chosen_;               // (layers, max_pairs) ids
  std::vector<Pinned> pinned_;  // ascending
  std::optional<Error> lost_;

  backend::DeviceSpec spec_;
  std::optional<Plan> plan_;
  backend::Step step_;
  uint32_t rows_ = 0;
  Lane::Keep keep_ = Lane::Keep::kNo;  // of the step's operations
  uint32_t routed_pairs_ = 0;
  std::vector<uint32_t> chosen_pairs_;  // by layer
  bool to_host_ = false;                // the step's operations wrote to chosen_
  std::vector<VkBufferCopy> regions_;
};

}  // namespace spillway::vulkan
