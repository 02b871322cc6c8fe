- a/f.txt
-- x
k
