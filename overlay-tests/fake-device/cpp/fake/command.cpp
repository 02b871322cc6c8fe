#include "fake/command.h"

#include <Block.h>

namespace fake {

namespace {

struct Log {
  std::mutex mutex;
  std::vector<Dispatch> dispatches;
  std::function<void(const Dispatch&)> hook;
  std::function<void(const Dispatch&)> runner;
};

Log& log() {
  static auto* log = new Log;
  return *log;
}

const Methods queue_methods(
    "MTLCommandQueue",
    {{"commandBufferWithUnretainedReferences",
      method<&CommandQueue::command_buffer>()},
     {"addResidencySets:count:",
      method<&CommandQueue::add_residency_sets>()}});

const Methods buffer_methods(
    "MTLCommandBuffer",
    {{"computeCommandEncoderWithDispatchType:",
      method<&CommandBuffer::compute_encoder>()},
     {"addCompletedHandler:", method<&CommandBuffer::add_completed_handler>()},
     {"encodeSignalEvent:value:", method<&CommandBuffer::encode_signal>()},
     {"encodeWaitForEvent:value:", method<&CommandBuffer::encode_wait>()},
     {"commit", method<&CommandBuffer::commit>()},
     {"waitUntilCompleted", method<&CommandBuffer::wait>()},
     {"status", method<&CommandBuffer::status>()},
     {"error", method<&CommandBuffer::error>()},
     {"commandQueue", method<&CommandBuffer::queue>()}});

const Methods encoder_methods(
    "MTLComputeCommandEncoder",
    {{"setComputePipelineState:", method<&ComputeEncoder::set_pipeline>()},
     {"setBuffer:offset:atIndex:", method<&ComputeEncoder::set_buffer>()},
     {"setBytes:length:atIndex:", method<&ComputeEncoder::set_bytes>()},
     {"setThreadgroupMemoryLength:atIndex:",
      method<&ComputeEncoder::set_threadgroup_memory>()},
     {"dispatchThreadgroups:threadsPerThreadgroup:",
      method<&ComputeEncoder::dispatch_threadgroups>()},
     {"dispatchThreads:threadsPerThreadgroup:",
      method<&ComputeEncoder::dispatch_threads>()},
     {"memoryBarrierWithScope:", method<&ComputeEncoder::barrier>()},
     {"waitForFence:", method<&ComputeEncoder::fence>()},
     {"updateFence:", method<&ComputeEncoder::fence>()},
     {"endEncoding", method<&ComputeEncoder::end>()}});

void record(const Dispatch& dispatch) {
  std::function<void(const Dispatch&)> hook;
  {
    std::lock_guard lock(log().mutex);
    log().dispatches.push_back(dispatch);
    hook = log().hook;
  }
  if (hook) {
    hook(dispatch);
  }
}

} // namespace

std::vector<Dispatch> take_dispatches() {
  std::lock_guard lock(log().mutex);
  return std::exchange(log().dispatches, {});
}

void on_dispatch(std::function<void(const Dispatch&)> hook) {
  std::lock_guard lock(log().mutex);
  log().hook = std::move(hook);
}

void set_runner(std::function<void(const Dispatch&)> runner) {
  std::lock_guard lock(log().mutex);
  log().runner = std::move(runner);
}

CommandBuffer::~CommandBuffer() {
  for (auto handler : handlers_) {
    Block_release(handler);
  }
  if (error_) {
    error_->release();
  }
}

Object* CommandBuffer::compute_encoder(MTL::DispatchType) {
  return (new ComputeEncoder(this))->autorelease();
}

void CommandBuffer::add_completed_handler(MTL::CommandBufferHandler block) {
  handlers_.push_back(Block_copy(block));
}

void CommandBuffer::encode_signal(SharedEvent* event, uint64_t value) {
  commands_.push_back([=] { event->signal(value); });
}

void CommandBuffer::encode_wait(SharedEvent* event, uint64_t value) {
  commands_.push_back([=] { event->wait(value); });
}

void CommandBuffer::encode(Dispatch dispatch) {
  dispatch.queue = queue_;
  record(dispatch);
  commands_.push_back([dispatch = std::move(dispatch)] {
    std::function<void(const Dispatch&)> runner;
    {
      std::lock_guard lock(log().mutex);
      runner = log().runner;
    }
    if (runner) {
      runner(dispatch);
    }
  });
}

void CommandBuffer::commit() {
  retain();
  status_ = MTL::CommandBufferStatusCommitted;
  queue_->submit(this);
}

void CommandBuffer::execute() {
  try {
    for (auto& command : commands_) {
      command();
    }
    status_ = MTL::CommandBufferStatusCompleted;
  } catch (const std::exception& e) {
    error_ = new Error(e.what());
    status_ = MTL::CommandBufferStatusError;
  }
  auto depth = pool_depth();
  for (auto handler : handlers_) {
    handler(reinterpret_cast<MTL::CommandBuffer*>(this));
  }
  drain_pool(depth);
  std::lock_guard lock(mutex_);
  finished_ = true;
  done_.notify_all();
}

void CommandBuffer::wait() {
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return finished_; });
}

CommandQueue::CommandQueue()
    : Object("MTLCommandQueue"), thread_(&CommandQueue::run, this) {}

CommandQueue::~CommandQueue() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

CommandBuffer* CommandQueue::command_buffer() {
  auto* buffer = new CommandBuffer(this);
  buffer->autorelease();
  return buffer;
}

void CommandQueue::submit(CommandBuffer* buffer) {
  {
    std::lock_guard lock(mutex_);
    submitted_.push_back(buffer);
  }
  changed_.notify_all();
}

void CommandQueue::run() {
  while (true) {
    CommandBuffer* next;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stop_ || !submitted_.empty(); });
      if (submitted_.empty()) {
        return;
      }
      next = submitted_.front();
      submitted_.pop_front();
    }
    next->execute();
    next->release();
  }
}

void ComputeEncoder::set_pipeline(const PipelineState* state) {
  pipeline_ = state;
}

void ComputeEncoder::set_buffer(
    Buffer* buffer,
    unsigned long offset,
    unsigned long index) {
  arguments_[index] = Argument{buffer, offset, {}};
}

void ComputeEncoder::set_bytes(
    const void* bytes,
    unsigned long size,
    unsigned long index) {
  auto* first = static_cast<const uint8_t*>(bytes);
  arguments_[index] = Argument{nullptr, 0, {first, first + size}};
}

void ComputeEncoder::set_threadgroup_memory(
    unsigned long size,
    unsigned long index) {
  threadgroup_memory_[index] = size;
}

void ComputeEncoder::dispatch_threadgroups(MTL::Size grid, MTL::Size group) {
  dispatch(grid, group, false);
}

void ComputeEncoder::dispatch_threads(MTL::Size grid, MTL::Size group) {
  dispatch(grid, group, true);
}

// Metal keeps what was set for the next dispatch of the encoder; so do we.
void ComputeEncoder::dispatch(MTL::Size grid, MTL::Size group, bool in_threads) {
  buffer_->encode(Dispatch{
      pipeline_->kernel(),
      {grid.width, grid.height, grid.depth},
      in_threads,
      {group.width, group.height, group.depth},
      arguments_,
      threadgroup_memory_,
      nullptr});
}

} // namespace fake
