// A small Objective-C runtime: classes, selectors, messages, reference counts.
//
// Methods are C++ member functions. A message finds its method by class and
// selector and jumps to it with every argument where the caller put it, so a
// method has the types that metal-cpp calls it with, structs included.
#pragma once

#include <atomic>
#include <initializer_list>
#include <string>
#include <unordered_map>
#include <utility>

#include <objc/runtime.h>

namespace fake {

using Method = void (*)();

class ClassObject;

// Every object a message can be sent to. Born with one reference.
class Object {
 public:
  explicit Object(const char* class_name);
  explicit Object(ClassObject* isa) : isa_(isa) {}
  virtual ~Object() = default;

  Object* retain();
  void release();
  Object* autorelease();
  unsigned long retain_count() const {
    return references_;
  }

  const ClassObject* isa() const {
    return isa_;
  }

 private:
  ClassObject* isa_;
  std::atomic<long> references_{1};
};

using Factory = Object* (*)();
using MethodList = std::initializer_list<std::pair<const char*, Method>>;

// A class. Messages to the class itself go to its metaclass, as in
// Objective-C.
class ClassObject : public Object {
 public:
  ClassObject(std::string name, ClassObject* metaclass)
      : Object(metaclass), name_(std::move(name)) {}

  Method find(SEL selector) const;
  void add(MethodList methods);
  Object* make() const;

  const std::string& name() const {
    return name_;
  }
  void set_factory(Factory factory) {
    factory_ = factory;
  }

 private:
  std::string name_;
  Factory factory_{nullptr};
  std::unordered_map<SEL, Method> methods_;
};

// The class of that name, made on first use.
ClassObject* class_named(const std::string& name);

// Declares what instances of a class answer to, before main() runs. `make`
// serves +alloc.
struct Methods {
  Methods(const char* class_name, MethodList methods, Factory make = nullptr);
};

// Declares what a class itself answers to.
struct ClassMethods {
  ClassMethods(const char* class_name, MethodList methods);
};

template <auto F>
struct Message;

template <typename T, typename R, typename... Args, R (T::*F)(Args...)>
struct Message<F> {
  static R call(Object* self, SEL, Args... args) {
    return (static_cast<T*>(self)->*F)(args...);
  }
};

template <typename T, typename R, typename... Args, R (T::*F)(Args...) const>
struct Message<F> {
  static R call(Object* self, SEL, Args... args) {
    return (static_cast<T*>(self)->*F)(args...);
  }
};

template <typename R, typename... Args, R (*F)(Args...)>
struct Message<F> {
  static R call(Object*, SEL, Args... args) {
    return F(args...);
  }
};

// The method that answers a message with a member function, or, for classes,
// with a free one.
template <auto F>
Method method() {
  return reinterpret_cast<Method>(&Message<F>::call);
}

// The autorelease pool of this thread.
size_t pool_depth();
void drain_pool(size_t depth);

} // namespace fake
