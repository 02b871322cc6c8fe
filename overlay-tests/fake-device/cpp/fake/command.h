// Command queues, buffers and encoders.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include <Metal/Metal.hpp>

#include "fake/dispatch.h"
#include "fake/event.h"

namespace fake {

class CommandQueue;

class CommandBuffer : public Object {
 public:
  explicit CommandBuffer(CommandQueue* queue)
      : Object("MTLCommandBuffer"), queue_(queue) {}
  ~CommandBuffer() override;

  Object* compute_encoder(MTL::DispatchType);
  void add_completed_handler(MTL::CommandBufferHandler block);
  void encode_signal(SharedEvent* event, uint64_t value);
  void encode_wait(SharedEvent* event, uint64_t value);
  void commit();
  void wait();
  MTL::CommandBufferStatus status() const {
    return status_;
  }
  Object* error() const {
    return error_;
  }
  CommandQueue* queue() const {
    return queue_;
  }

  // On the queue's thread.
  void execute();
  void encode(Dispatch dispatch);

 private:
  CommandQueue* queue_;
  std::vector<std::function<void()>> commands_;
  std::vector<MTL::CommandBufferHandler> handlers_;
  Error* error_{nullptr};
  std::atomic<MTL::CommandBufferStatus> status_{
      MTL::CommandBufferStatusNotEnqueued};
  std::mutex mutex_;
  std::condition_variable done_;
  bool finished_{false};
};

// Runs what is committed, in order, on a thread of its own, as a GPU does.
class CommandQueue : public Object {
 public:
  CommandQueue();
  ~CommandQueue() override;

  CommandBuffer* command_buffer();
  void submit(CommandBuffer* buffer);
  void add_residency_sets(const void*, unsigned long) {}

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<CommandBuffer*> submitted_;
  bool stop_{false};
  std::thread thread_;
};

class ComputeEncoder : public Object {
 public:
  explicit ComputeEncoder(CommandBuffer* buffer)
      : Object("MTLComputeCommandEncoder"), buffer_(buffer) {}

  void set_pipeline(const PipelineState* state);
  void set_buffer(Buffer* buffer, unsigned long offset, unsigned long index);
  void set_bytes(const void* bytes, unsigned long size, unsigned long index);
  void set_threadgroup_memory(unsigned long size, unsigned long index);
  void dispatch_threadgroups(MTL::Size grid, MTL::Size group);
  void dispatch_threads(MTL::Size grid, MTL::Size group);
  void barrier(MTL::BarrierScope) {}
  void fence(const Object*) {}
  void end() {}

 private:
  void dispatch(MTL::Size grid, MTL::Size group, bool in_threads);

  CommandBuffer* buffer_;
  const PipelineState* pipeline_{nullptr};
  std::map<int, Argument> arguments_;
  std::map<int, size_t> threadgroup_memory_;
};

} // namespace fake
