+ b/f.txt
@@ -1 +1 @@
k
