-- A vacuum of this session pauses for a millisecond after so many pages (of a dirtied one 20 points): all at once it takes a
-- processor from those who work, for as long as they need for several batches. And the server looks whether its node is
-- still there: a vacuum that nobody waits for any more would be in the way of who migrates the table next. (Before version
-- 14 it cannot.)
-- in:  points int8
-- out: looks text, delay text, points text
SELECT CASE WHEN current_setting('server_version_num')::int >= 140000
            THEN set_config('client_connection_check_interval', '500', false) END,
       set_config('vacuum_cost_delay', '1', false), set_config('vacuum_cost_limit', ($1::int8)::text, false);
