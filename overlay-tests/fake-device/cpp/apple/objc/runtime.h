// The names metal-cpp wants from Apple's Objective-C runtime. fake/objc.cpp
// defines them.
#pragma once

typedef struct objc_object* id;
typedef struct objc_class* Class;
typedef struct objc_selector* SEL;
struct objc_object {};
struct objc_class {};
typedef struct objc_object Protocol;

extern "C" {
Class objc_lookUpClass(const char* name);
Protocol* objc_getProtocol(const char* name);
SEL sel_registerName(const char* name);
}
