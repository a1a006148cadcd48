-- The file: its pages, and those of them that hold nothing.
-- in:  none
-- out: pages int8, unused int8, page_bytes int8
SELECT p.page_count, f.freelist_count, s.page_size
  FROM pragma_page_count p, pragma_freelist_count f, pragma_page_size s;
